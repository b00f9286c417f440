"""Problems for boosted trees, and gains by their definition."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.boosted_tree import Shape
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.histograms import Newton


def score(derivatives: np.ndarray, l2: float) -> float:
    gradient, hessian = np.split(derivatives.sum(0), 2)
    return float((gradient**2 / (hessian + l2)).sum())


def gain(derivatives: np.ndarray, left: np.ndarray, rules: Newton) -> float:
    """Of rows that are all a node's; -1 where a side is too small."""
    sides = derivatives[left], derivatives[~left]
    width = derivatives.shape[1] // 2
    if any(len(side) < rules.min_leaf or side[:, width:].sum() < rules.min_hessian for side in sides):
        return -1.0
    return sum(score(side, rules.l2) for side in sides) - score(derivatives, rules.l2)


def goes_left(tree: FlatTree, node: int, rows: np.ndarray) -> np.ndarray:
    values = rows[:, tree.feature[node]]
    return np.where(np.isnan(values), tree.missing_left[node], values <= tree.threshold[node])


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Shape]:
    """Features with ties, missing and constant values, sparse ones; derivatives; the rows that are sampled."""
    random = np.random.default_rng(seed)
    count, width, labels = random.integers(2, 100), random.integers(1, 6), random.integers(1, 5)
    rows = random.normal(size=(count, width)).astype(np.float32)
    for f in range(width):
        kind = random.integers(4)
        if kind == 0:
            rows[:, f] = rows[:, f].round()
        elif kind == 1:
            rows[random.random(count) < 0.8, f] = 0.5
        rows[random.random(count) < random.choice([0, 0, 0.2, 0.7, 1], p=[0.3, 0.2, 0.3, 0.1, 0.1]), f] = np.nan
    hessian = random.uniform(0.05, 0.5, (count, labels))
    derivatives = np.concatenate([random.normal(size=(count, labels)), hessian], 1).astype(np.float32)
    sampled = np.sort(random.permutation(count)[: random.integers(1, count + 1)]).astype(np.int32)
    features = np.sort(random.permutation(width)[: random.integers(1, width + 1)])
    newton = Newton(float(random.choice([0.1, 1, 5])), int(random.integers(1, 3)), float(random.choice([0, 0.5])))
    leaves = None if seed % 2 else int(random.integers(2, 8))
    return rows, derivatives, sampled, features, Shape(int(random.integers(0, 5)), leaves, 0.3, newton)
