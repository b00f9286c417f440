"""The audit of annotations: votes, agreement, and how well votes predict each other."""

from __future__ import annotations

import numpy as np

from ldl.annotations.agreement import krippendorff_alpha
from ldl.annotations.dirichlet import DirichletMultinomial
from ldl.annotations.equivalence import held_out_nll, most_raters
from ldl.annotations.votes import Annotations

SHOWN = (0, 1, 2, 3, 5, 10, 20, 50, 100)
"""Numbers of raters whose result is shown, besides the largest."""


def summarize(annotations: Annotations) -> list[str]:
    """Return lines about annotations, for people."""
    counts, votes = annotations.counts, annotations.votes
    names = [str(name) for name in annotations.labels.names]
    shown = names if len(names) <= 8 else [*names[:4], "...", names[-1]]
    tied = (counts == counts.max(1, keepdims=True)).sum(1) > 1
    lines = [
        f"items       {annotations}",
        f"votes       {votes.sum():,.10g}, {np.median(votes):g} an item in the median",
        f"labels      {len(names)} {annotations.labels.kind}: {', '.join(shown)}",
        f"            the most frequent is {names[int(counts.sum(0).argmax())]} with "
        f"{counts.sum(0).max() / counts.sum():.1%} of the votes",
        f"ties        {tied.mean():.1%} of the items have several most frequent labels",
    ]
    if not annotations.whole:
        fix = "they are rounded" if annotations.counted else "pass the number of votes with --votes_column"
        return [*lines, f"agreement   unknown: these are shares, not counts of votes; {fix}"]
    if not (votes > 1).any():
        return [*lines, "agreement   unknown: no item has two votes"]
    prior = DirichletMultinomial.fit(counts)
    lines.append(
        f"agreement   Krippendorff's alpha {krippendorff_alpha(counts, annotations.labels):.3f} "
        "(1 is full agreement, 0 is chance)"
    )
    worth = prior.effective_votes(np.array([1, 10, 1000]))
    lines.append(
        f"worth       concentration {prior.concentration:.3g}: 1, 10 and 1,000 votes on an item are worth "
        f"{worth[0]:.3g}, {worth[1]:.3g} and {worth[2]:.3g} independent votes"
    )
    most = most_raters(counts)
    kept = votes > most
    curve = held_out_nll(counts[kept], prior, most).mean(0)
    lines.append(f"power       expected NLL of a vote that others on its item predict ({kept.sum()} items), in nats")
    shown_raters = [*(k for k in SHOWN if k < most), most]
    return lines + [f"            {k:4} others  {curve[k]:.4f}" for k in shown_raters]
