"""DSNA's solver, working sets and Newton steps: speed beside ADMM on all members, and beside a plain loop over queries.

    python benchmarks/dsna/solver.py [--sizes 100 300 1000] [--page docs/results/faces.md]

The loop is ADMM as the textbook has it, a query at a time: weights and residual are split off, the step is fixed, and
every step solves its linear system. All end when primal and dual residuals are at most 1e-4 of their terms, and run in
turns in one process, on as many threads; medians of the rounds, the processor's milliseconds a query. With few features
queries are members themselves and penalties a tenth, so that weights fit them exactly, which is where ADMM is slow; it
gets 20,000 iterations, the loop 5,000. Gaps are how far objectives end from the least one, as a share of it, at worst.
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
from ldl.methods.dsna.sparse import approximate, objective
from ldl.reports.files import markdown

PENALTIES = 0.05, 0.5
LIGHT = 0.005, 0.05
TOLERANCE = 1e-4
MANY, FEW = 250, 8
ITERATIONS = 20_000
WAYS = ("working sets", "all members", "loop")
HEADER = (
    "features", "members", *(f"{way}, ms" for way in WAYS), "than all members", "than the loop",
    "gap", "gap of all members",
)  # fmt: skip


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
        sizes = [*((MANY, size) for size in options.sizes), (FEW, min(options.sizes))]
        rows = [measure(*size, options.queries, options.rounds) for size in sizes]
    show("DSNA's solver", HEADER, rows)
    if options.page:
        text = f"The processor's milliseconds a query, medians of {options.rounds} rounds."
        write_block(options.page, "solver", f"{text}\n\n{markdown(HEADER, rows)}")


def problems(count: int, members: int, features: int = MANY) -> tuple[Tensor, Tensor, Tensor]:
    """Clusters, queries near their members (with few features: the first of them), and anchors."""
    rng = np.random.default_rng(0)
    spread = np.geomspace(1, 0.02, features)
    points = rng.normal(size=(count, members, features)) * spread
    points /= np.sqrt(np.square(points).sum(2).mean())
    share = rng.dirichlet(np.full(members, 0.05), count)
    queries = points[:, 0] if features == FEW else (share[:, None] @ points)[:, 0] + 0.5 * points[:, 0]
    anchors = rng.dirichlet(np.full(members, 0.05), count)
    return torch.from_numpy(points), torch.from_numpy(queries), torch.from_numpy(anchors)


def loop(
    points: np.ndarray,
    query: np.ndarray,
    anchor: np.ndarray,
    penalties: tuple[float, float] = PENALTIES,
    most: int = 5000,
) -> float:
    """The objective that textbook ADMM with steps of 1 ends with."""
    sparsity, attraction = penalties
    count = len(points)
    z, r, u, w = anchor.copy(), query - anchor @ points, np.zeros(count), np.zeros(len(query))
    for _ in range(most):
        a = np.linalg.solve(points @ points.T + np.eye(count), points @ (query - r - w) + z - u)
        fit = query - a @ points
        before = np.concatenate([z, r])
        norm = np.linalg.norm(fit - w)
        r = (fit - w) * max(0.0, 1 - 1 / norm) if norm else fit - w
        z = shrink(a + u, anchor, sparsity, attraction)
        u, w = u + a - z, w + r - fit
        now, split, dual = np.concatenate([z, r]), np.concatenate([a, fit]), np.concatenate([u, w])
        if np.linalg.norm(split - now) <= TOLERANCE * np.linalg.norm(now) and np.linalg.norm(
            now - before
        ) <= TOLERANCE * np.linalg.norm(dual):
            break
    residual = np.linalg.norm(query - z @ points)
    return float(residual + sparsity * np.abs(z).sum() + attraction * np.abs(z - anchor).sum())


def shrink(x: np.ndarray, anchor: np.ndarray, sparsity: float, attraction: float) -> np.ndarray:
    """argmin of both penalties and (z - x)^2 / 2: the best of the kinks and of the stationary points between them."""
    candidates = np.stack(
        [np.zeros_like(x), anchor, *(x - s * sparsity - t * attraction for s in (-1, 1) for t in (-1, 1))]
    )
    value = sparsity * np.abs(candidates) + attraction * np.abs(candidates - anchor) + np.square(candidates - x) / 2
    return candidates[value.argmin(0), np.arange(len(x))]


def measure(features: int, members: int, queries: int, rounds: int) -> list[str]:
    """A row of the table."""
    points, query, anchors = problems(queries, members, features)
    penalties = LIGHT if features == FEW else PENALTIES
    none = torch.zeros_like(anchors)
    few = max(1, queries // 16)
    count = dict(zip(WAYS, (queries, queries, few)))

    def plain() -> Tensor:
        return solve(points, query, anchors, anchors, none, *penalties, False, TOLERANCE, ITERATIONS)[0]

    def run(way: str) -> None:
        if way == "working sets":
            approximate(points, query, anchors, *penalties, tolerance=TOLERANCE)
        elif way == "all members":
            plain()
        else:
            for problem in zip(points[:few].numpy(), query.numpy(), anchors.numpy()):
                loop(*problem, penalties)

    times = take_turns(WAYS, rounds, lambda way, _: seconds(lambda: run(way), count[way]).processor)
    took = {way: 1000 * median(times[way]) for way in WAYS}
    found = approximate(points, query, anchors, *penalties, tolerance=TOLERANCE)
    exact = approximate(points, query, anchors, *penalties, tolerance=1e-10)
    alone = objective(points, query, plain(), anchors, *penalties)
    gaps = [float(((each - exact.objective) / exact.objective).max()) for each in (found.objective, alone)]
    ratios = [f"{took[way] / took[WAYS[0]]:.0f}x" for way in WAYS[1:]]
    shown = [*(f"{took[way]:.1f}" for way in WAYS), *ratios, *(f"{gap:.0e}" for gap in gaps)]
    return [str(features), str(members), *shown]


if __name__ == "__main__":
    launch(main)
