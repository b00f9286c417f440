"""DSNA's solver, by working sets: speed beside the same ADMM on all members, and beside a plain loop over queries.

    python benchmarks/dsna/solver.py [--sizes 100 300 1000] [--page docs/results/faces.md]

The loop is ADMM as the textbook has it, a query at a time: weights and residual are split off, the step is fixed, and
every step solves its linear system. All end when primal and dual residuals are at most 1e-4 of their terms, and run in
turns in one process, on as many threads; medians of the rounds, the processor's milliseconds a query. The gap is how
far the solver's objective ends from the least one, as a share of it, at worst.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import seconds, take_turns
from ldl.methods.dsna.admm import solve
from ldl.methods.dsna.sparse import approximate
from ldl.reports.files import markdown

SPARSITY, ATTRACTION = 0.05, 0.5
TOLERANCE = 1e-4
FEATURES = 250
WAYS = ("working sets", "all members", "loop")
HEADER = ("members", *(f"{way}, ms" for way in WAYS), "than all members", "than the loop", "gap")


def main() -> None:
    """Measure every size, then print the table."""
    parser = make_parser(__doc__, block="solver", threads=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000], help="members (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=32, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    # The loop is numpy's, whose own threads torch does not set.
    with threadpool_limits(options.threads):
        rows = [measure(size, options.queries, options.rounds) for size in options.sizes]
    show("DSNA's solver", HEADER, rows)
    if options.page:
        text = f"{FEATURES} features, the processor's milliseconds a query, medians of {options.rounds} rounds."
        write_block(options.page, "solver", f"{text}\n\n{markdown(HEADER, rows)}")


def problems(count: int, members: int) -> tuple[Tensor, Tensor, Tensor]:
    """Clusters, queries near their members, and anchors."""
    rng = np.random.default_rng(0)
    spread = np.geomspace(1, 0.02, FEATURES)
    points = rng.normal(size=(count, members, FEATURES)) * spread
    points /= np.sqrt(np.square(points).sum(2).mean())
    share = rng.dirichlet(np.full(members, 0.05), count)
    queries = (share[:, None] @ points)[:, 0] + 0.5 * points[:, 0]
    anchors = rng.dirichlet(np.full(members, 0.05), count)
    return torch.from_numpy(points), torch.from_numpy(queries), torch.from_numpy(anchors)


def loop(points: np.ndarray, query: np.ndarray, anchor: np.ndarray, most: int = 5000) -> float:
    """The objective that textbook ADMM with steps of 1 ends with."""
    count = len(points)
    z, r, u, w = anchor.copy(), query - anchor @ points, np.zeros(count), np.zeros(len(query))
    for _ in range(most):
        a = np.linalg.solve(points @ points.T + np.eye(count), points @ (query - r - w) + z - u)
        fit = query - a @ points
        before = np.concatenate([z, r])
        norm = np.linalg.norm(fit - w)
        r = (fit - w) * max(0.0, 1 - 1 / norm) if norm else fit - w
        z = shrink(a + u, anchor, SPARSITY, ATTRACTION)
        u, w = u + a - z, w + r - fit
        now, split, dual = np.concatenate([z, r]), np.concatenate([a, fit]), np.concatenate([u, w])
        if np.linalg.norm(split - now) <= TOLERANCE * np.linalg.norm(now) and np.linalg.norm(
            now - before
        ) <= TOLERANCE * np.linalg.norm(dual):
            break
    residual = np.linalg.norm(query - z @ points)
    return float(residual + SPARSITY * np.abs(z).sum() + ATTRACTION * np.abs(z - anchor).sum())


def shrink(x: np.ndarray, anchor: np.ndarray, sparsity: float, attraction: float) -> np.ndarray:
    """argmin of both penalties and (z - x)^2 / 2: the best of the kinks and of the stationary points between them."""
    candidates = np.stack(
        [np.zeros_like(x), anchor, *(x - s * sparsity - t * attraction for s in (-1, 1) for t in (-1, 1))]
    )
    value = sparsity * np.abs(candidates) + attraction * np.abs(candidates - anchor) + np.square(candidates - x) / 2
    return candidates[value.argmin(0), np.arange(len(x))]


def measure(members: int, queries: int, rounds: int) -> list[str]:
    """A row of the table."""
    points, query, anchors = problems(queries, members)
    none = torch.zeros_like(anchors)
    few = max(1, queries // 16)
    count = dict(zip(WAYS, (queries, queries, few)))

    def run(way: str) -> None:
        if way == "working sets":
            approximate(points, query, anchors, SPARSITY, ATTRACTION, tolerance=TOLERANCE)
        elif way == "all members":
            solve(points, query, anchors, anchors, none, SPARSITY, ATTRACTION, False, TOLERANCE, 1000)
        else:
            for problem in zip(points[:few].numpy(), query.numpy(), anchors.numpy()):
                loop(*problem)

    times = take_turns(WAYS, rounds, lambda way, _: seconds(lambda: run(way), count[way]).processor)
    took = {way: 1000 * median(times[way]) for way in WAYS}
    found = approximate(points, query, anchors, SPARSITY, ATTRACTION, tolerance=TOLERANCE)
    exact = approximate(points, query, anchors, SPARSITY, ATTRACTION, tolerance=1e-10, iterations=20000)
    gap = float(((found.objective - exact.objective) / exact.objective).max())
    ratios = [f"{took[way] / took[WAYS[0]]:.0f}x" for way in WAYS[1:]]
    return [str(members), *(f"{took[way]:.1f}" for way in WAYS), *ratios, f"{gap:.0e}"]


if __name__ == "__main__":
    launch(main)
