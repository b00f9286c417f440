"""Split search over rows in no order: histograms over quantile bins, and random thresholds (extra trees).

Their cost is that of the features which are tried, so they suit small feature subsets and large nodes.
"""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.columns import BINS, midpoint
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.impurity import Node, Split, better, split_impurity

WIDE = 32
"""A row's count holds its draws in the lower 32 bits, with room for those of any node, and those in cluster 1 above."""
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
    node: Node,
    f: int,
    best: Split,
) -> tuple[Split, bool]:
    """The best midpoint between occupied bins of feature f, or ``best``; and whether f is constant here.

    Bins have ``codes`` and go from ``low`` to ``high``; ``own`` are the node's rows, ``counts`` their counts.
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
    left, left_ones = 0, 0
    for k in range(used - 1):
        left += sums[k] & 0xFFFFFFFF
        left_ones += sums[k] >> WIDE
        if left >= node.min_leaf and node.n - left >= node.min_leaf:
            threshold = midpoint(high[bins[k]], low[bins[k + 1]])
            best = better(best, node, split_impurity(table, node, left, left_ones), f, threshold)
    return best, used == 1


@inlined
def random_feature(
    column: np.ndarray,
    own: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    node: Node,
    f: int,
    share: float,
    best: Split,
) -> tuple[Split, bool]:
    """One threshold, ``share`` of the way from the smallest to the largest value; returns as the histogram does."""
    threshold, constant = between(column, own, share)
    if constant:
        return best, True
    total = np.int64(0)
    for i in range(len(own)):
        total += counts[i] * (column[own[i]] <= threshold)
    left, left_ones = total & 0xFFFFFFFF, total >> WIDE
    if left >= node.min_leaf and node.n - left >= node.min_leaf:
        best = better(best, node, split_impurity(table, node, left, left_ones), f, threshold)
    return best, False


@inlined
def between(column: np.ndarray, own: np.ndarray, share: float) -> tuple[float, bool]:
    """A threshold ``share`` of the way from the smallest to the largest value; and whether these are one."""
    smallest = largest = column[own[0]]
    for i in range(1, len(own)):
        value = column[own[i]]
        smallest = min(smallest, value)
        largest = max(largest, value)
    threshold = np.float32(smallest + share * (np.float64(largest) - np.float64(smallest)))
    return (threshold if threshold < largest else smallest), smallest == largest
