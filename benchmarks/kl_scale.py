"""How large a KL divergence is: what the mean baseline and k votes on an item reach on sets of votes.

    python benchmarks/kl_scale.py [--sets CIFAR-10H] --page docs/results/measures.md

The truth is the shares of all votes on an item. A combiner, fitted to the other half of the items (or groups), predicts
them from k votes that are drawn from the shares. It is the combiner of the power curve, a mixture of Dirichlets.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from benchmarks.annotators import MAIN, STUDIES
from benchmarks.common.script import launch, make_parser, write_block
from ldl.annotations import DirichletMixture
from ldl.metrics.functional import kl
from ldl.reports.files import markdown

VOTES = (1, 3, 10)
"""Numbers of votes on an item."""
DRAWS = 20
"""Draws of the votes of an item."""
LEAST_VOTES = 3
"""Votes of an item that takes part."""


def scale(counts: np.ndarray, groups: np.ndarray | None, seed: int = 0) -> list[float]:
    """Return the mean KL of the mean baseline and of each number of ``VOTES``, in nats.

    Args:
        counts: (N, C) votes on items.
        groups: (N,) groups that stay in one half; None for none.
        seed: Seed of the halves and of the draws.
    """
    rng = np.random.default_rng(seed)
    groups = np.arange(len(counts)) if groups is None else groups
    names = np.unique(groups)
    fitted = np.isin(groups, rng.permutation(names)[: len(names) // 2])
    combiner = DirichletMixture.fit(counts[fitted], groups[fitted])
    tested = counts[~fitted & (counts.sum(1) >= LEAST_VOTES)]
    shares = tested / tested.sum(1, keepdims=True)
    mean = (counts[fitted] / counts[fitted].sum(1, keepdims=True)).mean(0)
    return [divergence(shares, mean), *(_of_votes(shares, combiner, number, rng) for number in VOTES)]


def _of_votes(shares: np.ndarray, combiner: DirichletMixture, number: int, rng: np.random.Generator) -> float:
    draws = (combiner.posterior_mean(rng.multinomial(number, shares).astype(float)) for _ in range(DRAWS))
    return float(np.mean([divergence(shares, prediction) for prediction in draws]))


def divergence(shares: np.ndarray, prediction: np.ndarray) -> float:
    """Return the mean of the metric ``kl`` over items; one prediction (C,) may stand for all items."""
    return (
        kl(torch.from_numpy(np.broadcast_to(prediction, shares.shape).copy()), torch.from_numpy(shares)).mean().item()
    )


def main() -> None:
    """Print the table and write the block."""
    parser = make_parser(__doc__, block="kl_scale")
    parser.add_argument("--sets", nargs="+", choices=MAIN, default=MAIN, help="(default: all)")
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        with tempfile.TemporaryDirectory() as folder:
            data = STUDIES[name].make(Path(folder))
            data.setup()
            counts = data.counts(np.arange(data.size))
        cells = [f"{number:.2f}" for number in scale(counts, data.groups)]
        tested = counts.sum(1)[counts.sum(1) >= LEAST_VOTES]
        rows.append([name, f"{len(data.labels)} {data.labels.kind}", f"{np.median(tested):.0f}", *cells])
        print(rows[-1], flush=True)
    header = ["set", "labels", "votes an item", "mean baseline", *(f"from {number} votes" for number in VOTES)]
    header[4] = "from 1 vote"
    if options.page:
        write_block(options.page, "kl_scale", markdown(header, rows))


if __name__ == "__main__":
    launch(main)
