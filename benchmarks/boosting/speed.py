"""Speed of boosted stumps beside scikit-learn, and how it grows.

    python benchmarks/boosting/speed.py [--rows 4000 --features 1000 --stumps 64 --rounds 3]

The first table fits ``--stumps`` decision stumps on rows of normal numbers, of which one feature in a hundred tells
the class, in turn with scikit-learn's AdaBoostClassifier: medians of ``--rounds`` rounds in one process, one thread.
The second shows MILBoost on bags, and on two and four times as many bags, instances a bag, and features.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks.common.command import launch, make_parser
from benchmarks.common.timing import seconds, take_turns
from ldl.collective import Collective
from ldl.heads import MILBoost
from ldl.labels import LabelSpace


def problem(bags: int, instances: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Bags (B, J, F) and their labels (B,): a bag is positive where the best instance is better than most."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(bags, instances, features)).astype(np.float32)
    score = rows[..., : max(3, features // 100)].sum(2) + 0.5 * rng.normal(size=(bags, instances))
    best = score.max(1)
    return rows, (best > np.median(best)).astype(int)


def boosted(rows: np.ndarray, label: np.ndarray, stumps: int, real: bool) -> MILBoost:
    """MILBoost, fitted in one thread."""
    head = MILBoost(rounds=stumps, real=real, threads=1, seed=0)
    head.build(rows.shape[2], LabelSpace.nominal(["negative", "positive"]))
    head.fit(torch.from_numpy(rows), torch.eye(2)[torch.from_numpy(label)], Collective())
    return head


def compare(options: argparse.Namespace) -> None:
    """Print the medians of MILBoost on bags of one and of AdaBoost, and their ratios."""
    rows, label = problem(options.rows, 1, options.features)
    peer = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=options.stumps, random_state=0)
    works = {
        "MILBoost, discrete": lambda: boosted(rows, label, options.stumps, False),
        "MILBoost, real": lambda: boosted(rows, label, options.stumps, True),
        "AdaBoostClassifier": lambda: peer.fit(rows[:, 0], label),
    }
    times = take_turns(works, options.rounds, lambda name, _: seconds(works[name]).processor)
    theirs = statistics.median(times["AdaBoostClassifier"])
    print(f"{options.stumps} stumps on {options.rows} rows x {options.features} features, processor time of one thread")
    for name, column in times.items():
        median = statistics.median(column)
        spread = f"{min(column):.2f} to {max(column):.2f}"
        print(f"  {name:20} {median:8.2f} s ({spread}), {theirs / median:6.1f} times as fast as scikit-learn")


def growth(options: argparse.Namespace) -> None:
    """Print how long MILBoost takes on twice as much of everything."""
    print("MILBoost, real, LSE: bags x instances x features")
    base = (400, 10, 200)
    for shape in [base] + [
        (*base[:axis], times * base[axis], *base[axis + 1 :]) for axis in range(3) for times in (2, 4)
    ]:
        rows, label = problem(*shape)
        work = partial(boosted, rows, label, options.stumps, True)
        column = [seconds(work).processor for _ in range(options.rounds)]
        print(f"  {shape[0]:5} x {shape[1]:3} x {shape[2]:4} {statistics.median(column):8.2f} s")


def main() -> None:
    """Warm the compiler up, then print both tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--stumps", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for real in (True, False):
        boosted(*problem(20, 2, 5), 2, real)
    compare(options)
    growth(options)


if __name__ == "__main__":
    launch(main)
