"""Trees of small made-up problems, grown by some rules."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.binning import make_columns
from ldl.methods.forest.cluster_splits import log_table
from ldl.methods.forest.grower import (
    EXACT,
    LAYOUTS,
    GrowthRules,
    Tree,
    grow,
)
from ldl.methods.forest.sampling import bootstrap, stream

RULES = GrowthRules(
    search=EXACT, depth=20, min_samples=2, min_leaf=1, min_gain=0.0, tries=10**6, alpha=0.25, beta=8.0, block=32
)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random problem of few rows: features with ties, constants and doubles, labels that repeat or are one-hot."""
    rng = np.random.default_rng(seed)
    rows, width, labels = rng.integers(1, 150), rng.integers(1, 7), rng.integers(2, 6)
    x = rng.normal(size=(rows, width))
    for f in range(width):
        kind = rng.integers(6)
        if kind == 0:
            x[:, f] = rng.integers(3, size=rows)
        elif kind == 1:
            x[:, f] = 1.5
        elif kind == 2:
            x[:, f] = rng.random(rows) < 0.1
        elif kind == 3:
            x[:, f] = np.where(rng.random(rows) < 0.6, 0.25, x[:, f])
        elif kind == 4:
            x[:, f] = x[:, rng.integers(width)]
    kind = rng.integers(5)
    if kind == 0:
        d = np.eye(labels)[rng.integers(labels, size=rows)]
    elif kind == 1:
        votes = rng.multinomial(4, np.full(labels, 1 / labels), size=rows)
        d = votes / 4
    elif kind == 2:
        d = np.repeat(rng.dirichlet(np.ones(labels), 1), rows, axis=0)
    elif kind == 3:
        d = rng.dirichlet(np.ones(labels), 3)[(x[:, 0] > 0).astype(int) + (x[:, -1] > 0.5)]
    else:
        d = rng.dirichlet(np.ones(labels), rows)
    return x.astype(np.float32), d.astype(np.float32)


def plant(x: np.ndarray, d: np.ndarray, rules: GrowthRules, sampling: float = 0.8, seed: int = 0) -> Tree:
    rows, weights = bootstrap(len(x), sampling, True, seed, 0)
    columns = make_columns(x, LAYOUTS[rules.search])
    return grow(columns, rows, weights, d, log_table(int(weights.sum())), rules, stream(seed, 0))


def smooth(rows: int = 400, width: int = 8, labels: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Distributions that depend on the features, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width))
    scores = x @ rng.normal(size=(width, labels)) + rng.normal(size=(rows, labels))
    d = np.exp(scores)
    return x.astype(np.float32), (d / d.sum(1, keepdims=True)).astype(np.float32)


def same(one: Tree, two: Tree) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one[:6], two[:6]))


def table(rows: int, seed: int) -> np.ndarray:
    """Columns of many values, of few, of one, with and without missing ones."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 6)).astype(np.float32)
    features[:, 1] = np.round(3 * features[:, 1])
    features[:, 2] = np.round(40 * features[:, 2]) / 40
    features[random.random(rows) < 0.1, 3] = np.nan
    features[:, 4], features[:, 5] = np.nan, 1
    return features
