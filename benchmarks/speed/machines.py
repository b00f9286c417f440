"""Support vector machines of a node: Newton steps on the rows that miss, beside liblinear by scikit-learn.

    python benchmarks/speed/machines.py [--sizes 20 100 1000] [--rounds 5] [--page docs/results/speed.md]

Nodes of ``CostSensitiveForest`` whose labels have no order solve one for every random set of features. Both ways solve
the same problems in turns; liblinear penalises the intercept, here a hundredth as much as a weight.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.common.command import launch, make_parser
from benchmarks.common.tables import show, write_block
from benchmarks.common.timing import seconds, take_turns
from ldl.methods.forest.directions import Direction, label_costs, separate
from ldl.reports.files import markdown

FEATURES, PENALTY, RARE = 16, 5.0, 0.2
"""The square root of 256; the head's default; share of the rarer cluster."""
WAYS = ("liblinear", "Newton")
HEADER = ("rows", *(f"{way}, ms" for way in WAYS), "times faster", "liblinear's loss above Newton's")

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows (n, D), clusters (n,) and costs (n,)."""


def main() -> None:
    """Measure every size of node, then print the table."""
    parser = make_parser(__doc__, block="machines", threads=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 1000], help="rows (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=50, help="of each size (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    options = parser.parse_args()
    with threadpool_limits(options.threads):
        rows = [compare(size, options.nodes, options.rounds) for size in options.sizes]
    show("Machines of a node", HEADER, rows)
    if options.page:
        text = f"{FEATURES} features, processor's milliseconds a node, medians of {options.rounds} rounds."
        write_block(options.page, "machines", f"{text}\n\n{markdown(HEADER, rows)}")


def compare(size: int, nodes: int, rounds: int) -> list[str]:
    """A row of the table."""
    problems = [problem(size, seed) for seed in range(nodes)]
    solve = {"liblinear": liblinear, "Newton": newton}

    def measure(way: str, turn: int) -> float:
        return seconds(lambda: [solve[way](each) for each in problems], nodes).processor

    took = take_turns(WAYS, rounds, measure)
    before, now = (1000 * median(took[way]) for way in WAYS)
    above = max(loss(each, liblinear(each)) / loss(each, newton(each)) - 1 for each in problems)
    return [str(size), f"{before:.2f}", f"{now:.2f}", f"{before / now:.1f}", f"at most {above:.0e} of it"]


def problem(size: int, seed: int) -> Problem:
    """A node whose features, of a mean squared norm of one 256th each, tell a little of the rarer cluster."""
    rng = np.random.default_rng(seed)
    cluster = (np.arange(size) < RARE * size).astype(np.uint8)
    rows = (rng.normal(size=(size, FEATURES)) + 0.3 * cluster[:, None]) / FEATURES
    return rows, cluster, label_costs(cluster, np.ones(size), 100.0)


def newton(problem: Problem) -> Direction:
    """As nodes solve it."""
    return separate(*problem, PENALTY)


def liblinear(problem: Problem) -> Direction:
    """The same by liblinear, which halves ||w||^2."""
    rows, cluster, costs = problem
    centre = costs @ rows / costs.sum()
    machine = LinearSVC(C=PENALTY / 2, loss="squared_hinge", dual=False, intercept_scaling=10.0)
    machine.fit(rows - centre, cluster, costs)
    return machine.coef_[0], float(machine.intercept_[0] - centre @ machine.coef_[0])


def loss(problem: Problem, direction: Direction) -> float:
    """||w||^2 and the penalty of what misses."""
    rows, cluster, costs = problem
    weights, bias = direction
    missed = np.maximum(0, 1 - np.where(cluster, 1, -1) * (rows @ weights + bias))
    return float(weights @ weights + PENALTY * costs @ missed**2)


if __name__ == "__main__":
    launch(main)
