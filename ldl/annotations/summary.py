"""The audit of annotations: votes, agreement, and how well votes predict each other."""

from __future__ import annotations

import numpy as np

from ldl.annotations.agreement import krippendorff_alpha
from ldl.annotations.dirichlet import DirichletMultinomial
from ldl.annotations.equivalence import items_with_more, most_raters
from ldl.annotations.mixture import DirichletMixture, choose_size, combiner_in_words, sample_items, split_items
from ldl.annotations.power import PowerCurves, measure_power, whole_votes
from ldl.annotations.votes import Annotations

RANDOM_ORDERS = 200
"""Random orders of the items that the order of the table is compared with."""

SORTED_DEVIATIONS = 5
"""Standard deviations over random orders from which on a table does not count as randomly ordered."""

SHOWN_RATERS = (0, 1, 2, 3, 5, 10, 20, 50, 100)
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
        f"order       {_order(annotations.shares)}",
    ]
    if not annotations.whole:
        fix = "they are rounded" if annotations.counted else "pass the number of votes with --votes_column"
        return [*lines, f"agreement   unknown: these are shares, not counts of votes; {fix}"]
    if not (votes > 1).any():
        return [*lines, "agreement   unknown: no item has two votes"]
    lines.append(
        f"agreement   Krippendorff's alpha {krippendorff_alpha(counts, annotations.labels):.3f} "
        "(1 is full agreement, 0 is chance)"
    )
    prior = DirichletMultinomial.fit(counts)
    effective = prior.effective_votes(np.array([1, 10, 1000]))
    lines.append(
        f"worth       concentration {prior.concentration:.3g}: 1, 10 and 1,000 votes on an item are worth "
        f"{effective[0]:.3g}, {effective[1]:.3g} and {effective[2]:.3g} independent votes"
    )
    size, powers = _held_out_power(counts, annotations.groups)
    curve, error = powers.mean(), powers.error()
    most = len(curve) - 1
    lines.append(
        f"power       expected NLL of a vote that others on its item predict ({len(powers.nll)} items), in nats; "
        f"combined by {combiner_in_words([size])}"
    )
    shown_raters = [*(k for k in SHOWN_RATERS if k < most), most]
    drawn = [f" ± {error[k]:.4f}" if error[k] > 0 else "" for k in shown_raters]
    return lines + [f"            {k:4} others  {curve[k]:.4f}{around}" for k, around in zip(shown_raters, drawn)]


def power_curve(counts: np.ndarray, groups: np.ndarray | None = None) -> tuple[DirichletMixture, np.ndarray, int]:
    """Return the combiner of all items, the power curve (K + 1,), and its number of items.

    A mixture that predicts votes on an item is fitted to other items, with the same number of components.

    Args:
        counts: (N, C) votes, whole numbers.
        groups: (N,) of any type; items of a group are held out together.

    Raises:
        LDLError: No item has two votes, or votes that are negative, not finite or not whole.
    """
    size, powers = _held_out_power(counts, groups)
    return DirichletMixture.fit(counts, sizes=(size,)), powers.mean(), len(powers.nll)


def _held_out_power(counts: np.ndarray, groups: np.ndarray | None) -> tuple[int, PowerCurves]:
    """Return the number of components, and the curves of all items that have enough votes."""
    counts = whole_votes(counts)
    raters = most_raters(counts)
    folds, sample = split_items(groups, len(counts)), sample_items(counts)
    size = choose_size(counts[sample], None if groups is None else np.asarray(groups)[sample])
    if size == 1:  # a mean and a concentration do not overfit
        rows = items_with_more(counts, raters)
        return 1, measure_power(counts[rows], DirichletMultinomial.fit(counts), raters)
    curves = []
    for number in np.unique(folds):
        held = np.flatnonzero((folds == number) & (counts.sum(1) > raters))
        mixture = DirichletMixture.fit(counts[folds != number], sizes=(size,))
        curves.append(measure_power(counts[held], mixture, raters))
    return size, PowerCurves(*(np.concatenate(column) for column in zip(*curves)))


def _order(shares: np.ndarray) -> str:
    """Compare the agreement of votes on neighbouring items with that in random orders."""
    if len(shares) < 3:
        return f"{len(shares)} items are too few to judge their order"

    def agreement(rows: np.ndarray) -> float:
        return float((rows[1:] * rows[:-1]).sum(1).mean())

    rng, observed = np.random.default_rng(0), agreement(shares)
    chance = np.array([agreement(shares[rng.permutation(len(shares))]) for _ in range(RANDOM_ORDERS)])
    sorted_ = observed > chance.mean() + SORTED_DEVIATIONS * chance.std()
    return (
        f"items look {'sorted or grouped' if sorted_ else 'to be in random order'}: votes on items in successive rows "
        f"agree with probability {observed:.3f}, {chance.mean():.3f} by chance"
    )
