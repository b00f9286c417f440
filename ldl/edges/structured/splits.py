"""Splits of a node of binned patches: the best single feature by Gini impurity, and cost-sensitive hyperplanes.

Hyperplanes do not sacrifice the rarer class (Huang, Loy & Tang 2016, Sec. III-B).
"""

from __future__ import annotations

import numpy as np

from ldl.methods.numba_kernels import add_row, compiled, dot, draw_next, inlined, next_bits

HYPERPLANE_SAMPLE = 1024
"""Patches of a node from which hyperplanes are fitted; larger nodes draw them at random."""
NEWTON_STEPS = 10
"""Maximum number of Newton steps of a fit."""
COST_CAP = 100.0
"""Maximum weight of a class, which would be infinite for a vanishing share."""


@compiled
def best_split(
    codes: np.ndarray, rows: np.ndarray, labels: np.ndarray, ones: int, tries: int, min_leaf: int, order: np.ndarray,
    state: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Return the split with the lowest Gini impurity over ``tries`` random features and all their bins.

    Args:
        codes: (F, N) uint8.
        rows: (n,) patches of the node.
        labels: (n,) their classes, 0 or 1.
        ones: Number of patches of class 1.
        tries: Number of features.
        min_leaf: Minimum number of patches on each side.
        order: (F,) a permutation of the features, which is changed.
        state: Random state.

    Returns:
        The feature, or -1 if no split lowers the impurity, and the last bin that goes left.
    """
    count, width = len(rows), len(codes)
    feature, cut = -1, 0
    if ones == 0 or ones == count:
        return feature, cut
    # The larger the sum over sides of (ones^2 + zeros^2) / n, the lower the impurity. Ignore gains by rounding.
    best = _purity(count, ones) * (1 + 1e-9)
    histogram = np.empty(256, np.int64)
    for k in range(min(tries, width)):
        column = codes[draw_next(order, k, state)]
        histogram[:] = 0
        lowest, highest = 255, 0
        for i in range(count):
            code = np.int64(column[rows[i]])
            histogram[code] += 1 | np.int64(labels[i]) << 32
            lowest, highest = min(lowest, code), max(highest, code)
        sums = np.int64(0)
        for code in range(lowest, highest):
            if histogram[code] == 0:
                continue
            sums += histogram[code]
            left, left_ones = sums & 0xFFFFFFFF, sums >> 32
            if left < min_leaf or count - left < min_leaf:
                continue
            score = _purity(left, left_ones) + _purity(count - left, ones - left_ones)
            if score > best:
                best, feature, cut = score, order[k], code
    return feature, cut


@compiled
def best_split_of_many(
    codes: np.ndarray, rows: np.ndarray, labels: np.ndarray, costs: np.ndarray, tries: int, min_leaf: int,
    order: np.ndarray, state: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Extend :func:`best_split` to ``labels`` (n,) of 0..K - 1, whose classes weigh ``costs`` (K,) float64."""
    count, width, classes = len(rows), len(codes), len(costs)
    feature, cut = -1, 0
    totals, left_mass = np.zeros(classes), np.empty(classes)
    for i in range(count):
        totals[labels[i]] += costs[labels[i]]
    best = _purity_of_many(totals) * (1 + 1e-9)
    histogram = np.empty((256, classes), np.int64)
    for k in range(min(tries, width)):
        column = codes[draw_next(order, k, state)]
        histogram[:] = 0
        lowest, highest = 255, 0
        for i in range(count):
            code = np.int64(column[rows[i]])
            histogram[code, labels[i]] += 1
            lowest, highest = min(lowest, code), max(highest, code)
        left = np.int64(0)
        left_mass[:] = 0
        for code in range(lowest, highest):
            here = histogram[code].sum()
            if here == 0:
                continue
            left += here
            left_mass += histogram[code] * costs
            if left < min_leaf or count - left < min_leaf:
                continue
            score = _purity_of_many(left_mass) + _purity_of_many(totals - left_mass)
            if score > best:
                best, feature, cut = score, order[k], code
    return feature, cut


@inlined
def _purity_of_many(mass: np.ndarray) -> float:
    total = squares = 0.0
    for k in range(len(mass)):
        total += mass[k]
        squares += mass[k] * mass[k]
    return squares / total if total > 0 else 0.0


@inlined
def _purity(count: int, ones: int) -> float:
    zeros = count - ones
    return (np.float64(ones) * ones + np.float64(zeros) * zeros) / count


@compiled
def best_hyperplane(
    codes: np.ndarray, maps: np.ndarray, top: np.ndarray, rows: np.ndarray, labels: np.ndarray, ones: int, sets: int,
    min_leaf: int, shrinkage: float, least: float, order: np.ndarray, state: np.ndarray, feature: np.ndarray,
    weight: np.ndarray,
) -> tuple[bool, float]:  # fmt: skip
    """Return the best of several linear support vector machines, each on random features.

    A class with a share p of the node weighs (1 - p) / p, at most 100. Among the hyperplanes and their parallels, the
    one with the largest information gain wins, where both classes have the same mass. (The paper uses no parallels.
    Nodes whose classes hardly differ would then often remain leaves.) Arguments that are not listed are those of
    :func:`best_split`.

    Args:
        maps: (F,) the table of each feature.
        top: (tables, 256) float32, the value of each bin.
        sets: Number of hyperplanes to try.
        shrinkage: Weight of the squared norm, against a mean loss of 1.
        least: Gain that a hyperplane must exceed.
        feature: (D,) int32, receives the features if there is a split.
        weight: (D,) float32, receives their weights.

    Returns:
        Whether there is a split, and the threshold up to which the weighted sum goes left.
    """
    count, size = len(rows), len(feature)
    improves, threshold = False, np.float32(0)
    if ones == 0 or ones == count:
        return improves, threshold
    best = least + 1e-9
    sample = min(count, HYPERPLANE_SAMPLE)
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
                best, improves, threshold = gain, True, sums[ranks[i]]
                feature[:], weight[:] = tried, factors
    return improves, threshold


@compiled
def gain_of_cut(column: np.ndarray, cut: int, rows: np.ndarray, labels: np.ndarray, ones: int) -> float:
    """Return the gain of :func:`best_hyperplane` for the split in which bins (N,) up to ``cut`` go left."""
    count, left, left_ones = len(rows), 0, 0
    for i in range(count):
        goes = column[rows[i]] <= cut
        left += goes
        left_ones += goes and labels[i] == 1
    return _balanced_gain(left_ones / ones, (left - left_ones) / (count - ones))


@compiled
def add_up(
    codes: np.ndarray, maps: np.ndarray, top: np.ndarray, rows: np.ndarray, feature: np.ndarray, weight: np.ndarray,
    sums: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``sums`` (at least n,) float32 with the weighted sums of features (D,) of n rows."""
    sums[: len(rows)] = 0
    for f, factor in zip(feature, weight):
        column, values = codes[f], top[maps[f]]
        for i in range(len(rows)):
            sums[i] += factor * values[column[rows[i]]]


@compiled
def squared_hinge(x: np.ndarray, y: np.ndarray, cost: np.ndarray, shrinkage: float) -> np.ndarray:
    """Fit the linear support vector machine with squared hinge loss by Newton's method.

    It minimises shrinkage / 2 |w|^2 + sum_i cost_i max(0, 1 - y_i w.x_i)^2 / (2 sum_i cost_i), where the last weight,
    of a constant, is not penalised. A step is a ridge regression on the rows with a positive loss. The fit ends when
    these rows no longer change. ``x`` is (n, D + 1) float64 with a last column of 1, ``y`` (n,) is -1 or 1, ``cost``
    (n,) is positive. Returns the weights (D + 1,).
    """
    count, size = x.shape
    active, w = np.ones(count, np.bool_), np.zeros(size)
    scale = 1 / cost.sum()
    for _ in range(NEWTON_STEPS):
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
    """Standardise the first columns in place, constant columns to 0, and return the divisors."""
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
    """Return the information gain in nats for classes of mass 1/2, of which these shares go left."""
    left, right = 0.5 * (ones + zeros), 0.5 * (2 - ones - zeros)
    return np.log(2.0) - left * _entropy(0.5 * ones, left) - right * _entropy(0.5 * (1 - ones), right)


@inlined
def _entropy(count: float, whole: float) -> float:
    if count <= 0 or count >= whole:
        return 0.0
    share = count / whole
    return -share * np.log(share) - (1 - share) * np.log(1 - share)
