"""Split search over rows in no order: histograms over quantile bins, and random thresholds (extra trees).

Their cost is that of the features which are tried, so they suit small feature subsets and large nodes.
"""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.columns import BINS, midpoint
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.impurity import TIE, split_impurity
from ldl.methods.forest.ordered import MASK, ONES

FEW = 24
"""Up to so many rows are sorted into place; a histogram would be mostly empty."""


@inlined
def histogram_feature(
    codes: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    own: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    n: int,
    ones: int,
    min_leaf: int,
    best: float,
) -> tuple[float, float, bool, int, bool]:
    """The best midpoint between occupied bins of one feature.

    Args:
        codes: (N,) bin of every row.
        low: (256,) smallest value in each bin.
        high: (256,) largest.
        own: Rows of the node.
        counts: Their packed counts, int64.
        table: k ln k.
        n: Draws in the node.
        ones: Those in cluster 1.
        min_leaf: Draws that each side must hold.
        best: The impurity to beat.

    Returns:
        best impurity, threshold, whether it is new, impurities computed, whether the feature is constant here.
    """
    bins = np.empty(BINS, np.int64)
    sums = np.empty(BINS, np.int64)
    used = 0
    if len(own) <= FEW:
        for i in range(len(own)):
            code = np.int64(codes[own[i]])
            place = used
            while place > 0 and bins[place - 1] >= code:
                place -= 1
            if place < used and bins[place] == code:
                sums[place] += counts[i]
                continue
            for k in range(used, place, -1):
                bins[k], sums[k] = bins[k - 1], sums[k - 1]
            bins[place], sums[place] = code, counts[i]
            used += 1
    else:
        histogram = np.zeros(BINS, np.int64)
        for i in range(len(own)):
            histogram[codes[own[i]]] += counts[i]
        for code in range(BINS):
            if histogram[code]:
                bins[used], sums[used] = code, histogram[code]
                used += 1
    threshold, found, evaluations = np.float32(0), False, 0
    left, left_ones = 0, 0
    for k in range(used - 1):
        left += sums[k] & 0xFFFFFFFF
        left_ones += sums[k] >> 32
        if left >= min_leaf and n - left >= min_leaf:
            score = split_impurity(table, left, left_ones, n, ones)
            evaluations += 1
            if score < best - TIE * n:
                best, threshold, found = score, midpoint(high[bins[k]], low[bins[k + 1]]), True
    return best, threshold, found, evaluations, used == 1


@inlined
def random_feature(
    column: np.ndarray,
    own: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    n: int,
    ones: int,
    min_leaf: int,
    share: float,
    best: float,
) -> tuple[float, float, bool, int, bool]:
    """One threshold, ``share`` of the way from the smallest to the largest value; returns as the histogram does."""
    smallest = largest = column[own[0]]
    for i in range(1, len(own)):
        value = column[own[i]]
        smallest = min(smallest, value)
        largest = max(largest, value)
    if smallest == largest:
        return best, np.float32(0), False, 0, True
    threshold = np.float32(smallest + share * (np.float64(largest) - np.float64(smallest)))
    if threshold >= largest:
        threshold = smallest
    total = np.int64(0)
    for i in range(len(own)):
        total += counts[i] * (column[own[i]] <= threshold)
    left, left_ones = total & 0xFFFFFFFF, total >> 32
    if left < min_leaf or n - left < min_leaf:
        return best, threshold, False, 0, False
    score = split_impurity(table, left, left_ones, n, ones)
    found = score < best - TIE * n
    return (score if found else best), threshold, found, 1, False


@inlined
def widen(packed: int) -> int:
    """A packed count with room for the draws of any node: 32 bits each."""
    return np.int64(packed & MASK) | (np.int64(packed >> ONES) << 32)
