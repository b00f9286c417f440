"""Splits of a node by a hyperplane that does not sacrifice the rarer class (Huang, Loy & Tang 2016, Sec. III-B)."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.forest.draws import draw_next, next_bits
from ldl.methods.forest.vectors import add_row, dot

SAMPLE = 1024
"""Larger nodes fit their hyperplanes to so many patches, drawn at random."""
ROUNDS = 10
"""Newton steps of a fit, at most."""
COST_CAP = 100.0
"""The largest weight of a class; that of a vanishing share would be infinite."""


@compiled
def best_hyperplane(
    codes: np.ndarray,
    maps: np.ndarray,
    top: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    ones: int,
    sets: int,
    min_leaf: int,
    shrinkage: float,
    least: float,
    order: np.ndarray,
    state: np.ndarray,
    feature: np.ndarray,
    weight: np.ndarray,
) -> tuple[bool, float]:
    """The best of several linear support vector machines, each on random features.

    A class of share p in the node weighs (1 - p) / p, at most 100. Of the hyperplanes, and of their parallels, the one
    stays whose information gain is largest when both classes count the same. (The paper takes no parallels; a node
    whose classes hardly differ would then often stay whole.)

    Arguments that are not listed are those of :func:`.gini.best_split`.

    Args:
        maps: (F,) which table each feature has.
        top: (tables, 256) float32, the value of each bin.
        sets: How many hyperplanes are tried.
        shrinkage: Weight of the squared norm, against a mean loss of 1.
        least: The gain that a hyperplane must exceed.
        feature: (D,) int32, gets the features where there is a split.
        weight: (D,) float32, gets their weights.

    Returns:
        Whether there is a split, and the threshold up to which the weighted sum goes left.
    """
    count, size = len(rows), len(feature)
    found, threshold = False, np.float32(0)
    if ones == 0 or ones == count:
        return found, threshold
    best = least + 1e-9
    sample = min(count, SAMPLE)
    x, y, cost = np.empty((sample, size + 1)), np.empty(sample), np.empty(sample)
    sums = np.empty(count, np.float32)
    tried, factors = np.empty(size, np.int32), np.empty(size, np.float32)
    share = ones / count
    costs = min((1 - share) / share, COST_CAP), min(share / (1 - share), COST_CAP)
    for _ in range(sets):
        for k in range(size):
            draw_next(order, k, state)
        for i in range(sample):
            at = i if count == sample else np.int64(next_bits(state) % np.uint64(count))
            y[i] = 1 if labels[at] else -1
            cost[i] = costs[0] if labels[at] else costs[1]
            for k in range(size):
                x[i, k] = top[maps[order[k]], codes[order[k], rows[at]]]
            x[i, size] = 1
        spread = _standardize(x, size)
        w = squared_hinge(x, y, cost, shrinkage)
        for k in range(size):
            tried[k], factors[k] = order[k], w[k] / spread[k]
        add_up(codes, maps, top, rows, tried, factors, sums)
        ranks = np.argsort(sums)
        left_ones = 0
        for i in range(count - min_leaf):
            left_ones += labels[ranks[i]]
            if i + 1 < min_leaf or sums[ranks[i]] == sums[ranks[i + 1]]:
                continue
            gain = _balanced_gain(left_ones / ones, (i + 1 - left_ones) / (count - ones))
            if gain > best:
                best, found, threshold = gain, True, sums[ranks[i]]
                feature[:], weight[:] = tried, factors
    return found, threshold


@compiled
def gain_of_cut(column: np.ndarray, cut: int, rows: np.ndarray, labels: np.ndarray, ones: int) -> float:
    """The gain, as hyperplanes are judged by, where rows with a bin (N,) of at most ``cut`` go left."""
    count, left, left_ones = len(rows), 0, 0
    for i in range(count):
        goes = column[rows[i]] <= cut
        left += goes
        left_ones += goes and labels[i] == 1
    return _balanced_gain(left_ones / ones, (left - left_ones) / (count - ones))


@compiled
def add_up(
    codes: np.ndarray,
    maps: np.ndarray,
    top: np.ndarray,
    rows: np.ndarray,
    feature: np.ndarray,
    weight: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Fill in the weighted sums of features (D,) for n rows, (at least n,) float32; the rest as above."""
    sums[: len(rows)] = 0
    for f, factor in zip(feature, weight):
        column, values = codes[f], top[maps[f]]
        for i in range(len(rows)):
            sums[i] += factor * values[column[rows[i]]]


@compiled
def squared_hinge(x: np.ndarray, y: np.ndarray, cost: np.ndarray, shrinkage: float) -> np.ndarray:
    """The linear support vector machine with squared hinge loss, by Newton's method.

    It minimises shrinkage / 2 |w|^2 + sum_i cost_i max(0, 1 - y_i w.x_i)^2 / (2 sum_i cost_i), the last weight, of a
    constant, being free. A step is a ridge regression on the rows that have a loss; it ends when these stay the same.
    ``x`` are (n, D + 1) float64, the last column 1, ``y`` (n,) -1 or 1, ``cost`` (n,) positive; the weights (D + 1,).
    """
    count, size = x.shape
    active, w = np.ones(count, np.bool_), np.zeros(size)
    scale = 1 / cost.sum()
    for _ in range(ROUNDS):
        gram, moment = shrinkage * np.eye(size), np.zeros(size)
        gram[size - 1, size - 1] = 1e-9
        for i in range(count):
            if active[i]:
                factor = cost[i] * scale
                for a in range(size):
                    add_row(gram[a, : a + 1], x[i], factor * x[i, a])
                add_row(moment, x[i], factor * y[i])
        for a in range(size):
            for b in range(a):
                gram[b, a] = gram[a, b]
        w = np.linalg.solve(gram, moment)
        changed = False
        for i in range(count):
            loses = y[i] * dot(x[i], w) < 1
            changed |= loses != active[i]
            active[i] = loses
        if not changed:
            break
    return w


@inlined
def _standardize(x: np.ndarray, size: int) -> np.ndarray:
    """Bring the first columns to mean 0 and variance 1, in place; constant ones to 0. Returns the divisors."""
    spread = np.empty(size)
    for k in range(size):
        mean = squares = 0.0
        for i in range(len(x)):
            mean += x[i, k]
            squares += x[i, k] ** 2
        mean /= len(x)
        variance = squares / len(x) - mean**2
        spread[k] = np.sqrt(variance) if variance > 1e-12 else 1.0
        for i in range(len(x)):
            x[i, k] = (x[i, k] - mean) / spread[k]
    return spread


@inlined
def _balanced_gain(ones: float, zeros: float) -> float:
    """Information gain in nats where both classes have the mass 1/2; of each, the share that goes left."""
    left, right = 0.5 * (ones + zeros), 0.5 * (2 - ones - zeros)
    return np.log(2.0) - left * _entropy(0.5 * ones, left) - right * _entropy(0.5 * (1 - ones), right)


@inlined
def _entropy(part: float, whole: float) -> float:
    if part <= 0 or part >= whole:
        return 0.0
    share = part / whole
    return -share * np.log(share) - (1 - share) * np.log(1 - share)
