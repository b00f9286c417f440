"""Split search over rows in the order of their values: ``exact``, and the paper's adaptive variable step.

Both run along a feature's listed rows with prefix counts of the draws and of those in cluster 1, so that the gain of
a candidate is three numbers of a table a side. Rows of the default value, which are not listed, count as one.

Arguments that all share: ``listed``, the values of the listed rows, rising, and ``ids``, these rows in the tree's
numbering; ``packed``, the counts of each row of the tree; ``n`` draws in the node on ``count`` rows, of which
``ones`` are in cluster 1; ``best``, the impurity to beat.
"""

from __future__ import annotations

import math

import numpy as np

from ldl.methods.forest.columns import midpoint
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.impurity import TIE, impurity, split_impurity

ONES = 16
"""A row's packed count holds its draws in the lower 16 bits and, again, those in cluster 1 above them."""
MASK = (1 << ONES) - 1


@inlined
def count_default(
    packed: np.ndarray, ids: np.ndarray, lo: int, hi: int, n: int, ones: int, count: int
) -> tuple[int, int]:
    """Draws, and those in cluster 1, of the node's rows that are not listed in ids[lo:hi]."""
    if hi - lo == count:
        return 0, 0
    for i in range(lo, hi):
        entry = packed[ids[i]]
        n -= entry & MASK
        ones -= entry >> ONES
    return n, ones


@inlined
def default_place(listed: np.ndarray, lo: int, hi: int, default: float) -> int:
    """Where the default value stands among the rising values listed[lo:hi]."""
    if hi == lo or listed[lo] > default:
        return lo
    if listed[hi - 1] < default:
        return hi
    while listed[lo] < default:
        lo += 1
    return lo


@inlined
def exact_run(
    listed: np.ndarray,
    ids: np.ndarray,
    lo: int,
    hi: int,
    after: float,
    left: int,
    left_ones: int,
    packed: np.ndarray,
    table: np.ndarray,
    n: int,
    ones: int,
    min_leaf: int,
    block: int,
    best: float,
) -> tuple[float, float, bool, int, int, int]:
    """The best midpoint after one of the rows ids[lo:hi]; ``after`` is the value that follows them, or NaN.

    Counts are taken in blocks. Wherever the rows of a block stand, its counts lie in a rectangle, and impurity is
    concave: no candidate inside beats the rectangle's corners. A block whose corners are no better than ``best`` is
    passed over, so the search stays exact at a fraction of the evaluations.

    Returns:
        best impurity, its threshold, whether it is new, draws and ones up to hi, impurities computed.
    """
    threshold, found, evaluations = np.float32(0), False, 0
    start = split_impurity(table, left, left_ones, n, ones)
    i = lo
    while i < hi:
        end = min(i + block, hi)
        if block > 1:
            total = 0
            for k in range(i, end):
                total += packed[ids[k]]
            draws, in_one = total & MASK, total >> ONES
            stop = split_impurity(table, left + draws, left_ones + in_one, n, ones)
            bound = min(
                min(start, stop),
                split_impurity(table, left + in_one, left_ones + in_one, n, ones),
                split_impurity(table, left + draws - in_one, left_ones, n, ones),
            )
            evaluations += 3
            start = stop
            if bound >= best - TIE * n:
                left, left_ones, i = left + draws, left_ones + in_one, end
                continue
        below = listed[i]
        for k in range(i, end):
            entry = packed[ids[k]]
            left += entry & MASK
            left_ones += entry >> ONES
            above = listed[k + 1] if k + 1 < hi else after
            if below < above and left >= min_leaf and n - left >= min_leaf:
                score = split_impurity(table, left, left_ones, n, ones)
                evaluations += 1
                if score < best - TIE * n:
                    best, threshold, found = score, midpoint(below, above), True
            below = above
        i = end
    return best, threshold, found, left, left_ones, evaluations


@inlined
def exact_feature(
    listed: np.ndarray,
    ids: np.ndarray,
    default: float,
    lo: int,
    hi: int,
    count: int,
    packed: np.ndarray,
    table: np.ndarray,
    n: int,
    ones: int,
    min_leaf: int,
    block: int,
    best: float,
) -> tuple[float, float, bool, int]:
    """The best of all midpoints of one feature: best impurity, threshold, whether it is new, impurities computed."""
    place, draws, in_one = hi, 0, 0
    if hi - lo < count:
        draws, in_one = count_default(packed, ids, lo, hi, n, ones, count)
        place = default_place(listed, lo, hi, default)
    after = default if draws else np.float32(np.nan)
    best, threshold, found, left, left_ones, evaluations = exact_run(
        listed, ids, lo, place, after, 0, 0, packed, table, n, ones, min_leaf, block, best
    )
    if draws and place < hi:
        left, left_ones = left + draws, left_ones + in_one
        if left >= min_leaf and n - left >= min_leaf:
            score = split_impurity(table, left, left_ones, n, ones)
            evaluations += 1
            if score < best - TIE * n:
                best, threshold, found = score, midpoint(default, listed[place]), True
        best, later, better, left, left_ones, more = exact_run(
            listed, ids, place, hi, np.float32(np.nan), left, left_ones, packed,
            table, n, ones, min_leaf, block, best,
        )  # fmt: skip
        evaluations += more
        if better:
            threshold, found = later, True
    return best, threshold, found, evaluations


@inlined
def adaptive_feature(
    listed: np.ndarray,
    ids: np.ndarray,
    default: float,
    lo: int,
    hi: int,
    count: int,
    packed: np.ndarray,
    table: np.ndarray,
    n: int,
    ones: int,
    min_leaf: int,
    alpha: float,
    beta: float,
    best: float,
) -> tuple[float, float, bool, int]:
    """The best midpoint met in steps of alpha N / (1 + exp(beta (g / g_max - 1/2))), at least 1 (Eq. 5).

    N is the number of rows, g the gain just computed, g_max the best gain so far over all features of the node; while
    that is 0 the ratio counts as 1. A step that ends between rows of equal value goes on to the last of them.
    Returns as :func:`exact_feature` does.
    """
    place, draws, in_one = -1, 0, 0
    if hi - lo < count:
        draws, in_one = count_default(packed, ids, lo, hi, n, ones, count)
        place = default_place(listed, lo, hi, default)
    whole = impurity(table, n, ones)
    threshold, found, evaluations = np.float32(0), False, 0
    left, left_ones = 0, 0
    i, wait, missing = lo, 1, draws > 0
    while i < hi or missing:
        if missing and i == place:
            below, missing = default, False
            left, left_ones, wait = left + draws, left_ones + in_one, wait - 1
        else:
            # Rows inside a step are only counted.
            end = min(i + max(wait, 1), place if missing else hi)
            wait -= end - i
            while i < end:
                entry = packed[ids[i]]
                left += entry & MASK
                left_ones += entry >> ONES
                i += 1
            below = listed[i - 1]
        if wait > 0 or not (missing or i < hi):
            continue
        above = default if missing and i == place else listed[i]
        if not below < above or left < min_leaf or n - left < min_leaf:
            continue
        score = split_impurity(table, left, left_ones, n, ones)
        evaluations += 1
        if score < best - TIE * n:
            best, threshold, found = score, midpoint(below, above), True
        top = whole - best
        ratio = (whole - score) / top if top > TIE * n else 1.0
        wait = max(1, int(alpha * count / (1 + math.exp(beta * (ratio - 0.5)))))
    return best, threshold, found, evaluations
