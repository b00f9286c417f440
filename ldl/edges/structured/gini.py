"""The split of binned patches that parts two classes best, by Gini impurity."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.forest.draws import draw_next


@compiled
def best_split(
    codes: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    ones: int,
    tries: int,
    min_leaf: int,
    order: np.ndarray,
    state: np.ndarray,
) -> tuple[int, int]:
    """The split with the lowest Gini impurity over ``tries`` random features and all their bins.

    Args:
        codes: (F, N) uint8.
        rows: (n,) patches of the node.
        labels: (n,) their classes, 0 or 1.
        ones: How many are 1.
        tries: How many features.
        min_leaf: Patches that each side must keep.
        order: (F,) a permutation of the features; its order changes.
        state: Random numbers.

    Returns:
        The feature, -1 where no split lowers the impurity, and the last bin that goes left.
    """
    count, width = len(rows), len(codes)
    feature, cut = -1, 0
    if ones == 0 or ones == count:
        return feature, cut
    # The larger the sum over sides of (ones^2 + zeros^2) / n, the lower the impurity; gains of rounding are none.
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
    codes: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    costs: np.ndarray,
    tries: int,
    min_leaf: int,
    order: np.ndarray,
    state: np.ndarray,
) -> tuple[int, int]:
    """As :func:`best_split`, for ``labels`` (n,) of 0..K - 1, whose classes weigh ``costs`` (K,) float64."""
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
