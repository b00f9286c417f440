"""Split search over rows in the order of their values: ``exact``, and the paper's adaptive variable step.

Both run along a feature's listed rows with prefix counts of the draws and of those in cluster 1, so that the gain of
a candidate is three numbers of a table a side. Rows of the default value, which are not listed, count as one.

Arguments that all share: ``ids``, the listed rows of feature ``f`` at ``lo`` to ``hi``, in the tree's numbering, and
``listed``, their values, rising; ``packed``, the counts of each row of the tree; ``best``, the split to beat.
"""

from __future__ import annotations

import math

import numpy as np

from ldl.methods.forest.columns import midpoint
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.impurity import TIE, Node, Split, better, impurity, split_impurity

ONES = 16
"""A row's packed count holds its draws in the lower 16 bits and, again, those in cluster 1 above them."""
MASK = (1 << ONES) - 1


@inlined
def default_rows(
    ids: np.ndarray, listed: np.ndarray, packed: np.ndarray, node: Node, lo: int, hi: int, default: float
) -> tuple[int, int, int]:
    """Where the default value stands among the listed ones; draws, and those in cluster 1, of the rows that have it."""
    if hi - lo == node.count:
        return hi, 0, 0
    draws, in_one = node.n, node.ones
    for i in range(lo, hi):
        entry = packed[ids[i]]
        draws -= entry & MASK
        in_one -= entry >> ONES
    place = np.int64(lo)
    while place < hi and listed[place] < default:
        place += 1
    return place, draws, in_one


@inlined
def exact_feature(
    ids: np.ndarray,
    listed: np.ndarray,
    packed: np.ndarray,
    table: np.ndarray,
    node: Node,
    f: int,
    lo: int,
    hi: int,
    default: float,
    block: int,
    best: Split,
) -> Split:
    """The best of all midpoints of feature f, or ``best``.

    Counts are taken in blocks. Wherever the rows of a block stand, its counts lie in a rectangle, and impurity is
    concave: no candidate inside beats the rectangle's corners. A block whose corners are no better than ``best`` is
    passed over, so the search stays exact at a fraction of the evaluations.
    """
    n, min_leaf = node.n, node.min_leaf
    place, draws, in_one = default_rows(ids, listed, packed, node, lo, hi, default)
    # Up to the default value, which follows where there are such rows, then on to the end.
    i, stop = lo, place
    after = default if draws else np.float32(np.nan)
    left, left_ones = 0, 0
    start = split_impurity(table, node, left, left_ones)
    while i < hi:
        if i == stop:
            left, left_ones = left + draws, left_ones + in_one
            start = split_impurity(table, node, left, left_ones)
            if left >= min_leaf and n - left >= min_leaf:
                best = better(best, node, start, f, midpoint(default, listed[i]))
            stop, after = hi, np.float32(np.nan)
        end = min(i + block, stop)
        if block > 1:
            total = 0
            for k in range(i, end):
                total += packed[ids[k]]
            more, more_ones = total & MASK, total >> ONES
            before, start = start, split_impurity(table, node, left + more, left_ones + more_ones)
            bound = min(
                min(before, start),
                split_impurity(table, node, left + more_ones, left_ones + more_ones),
                split_impurity(table, node, left + more - more_ones, left_ones),
            )
            best = Split(best.feature, best.threshold, best.impurity, best.evaluations + 3)
            if bound >= best.impurity - TIE * n:
                left, left_ones, i = left + more, left_ones + more_ones, end
                continue
        below = listed[i]
        for k in range(i, end):
            entry = packed[ids[k]]
            left += entry & MASK
            left_ones += entry >> ONES
            above = listed[k + 1] if k + 1 < stop else after
            if below < above and left >= min_leaf and n - left >= min_leaf:
                best = better(best, node, split_impurity(table, node, left, left_ones), f, midpoint(below, above))
            below = above
        i = end
    return best


@inlined
def adaptive_feature(
    ids: np.ndarray,
    listed: np.ndarray,
    packed: np.ndarray,
    table: np.ndarray,
    node: Node,
    f: int,
    lo: int,
    hi: int,
    default: float,
    alpha: float,
    beta: float,
    best: Split,
) -> Split:
    """The best midpoint met in steps of alpha N / (1 + exp(beta (g / g_max - 1/2))), at least 1 (Eq. 5), or ``best``.

    N is the number of rows, g the gain just computed, g_max the best gain so far over all features of the node; while
    that is 0 the ratio counts as 1. A step that ends between rows of equal value goes on to the last of them.
    """
    n, min_leaf = node.n, node.min_leaf
    place, draws, in_one = default_rows(ids, listed, packed, node, lo, hi, default)
    whole = impurity(table, n, node.ones)
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
        score = split_impurity(table, node, left, left_ones)
        best = better(best, node, score, f, midpoint(below, above))
        top = whole - best.impurity
        ratio = (whole - score) / top if top > TIE * n else 1.0
        wait = max(1, int(alpha * node.count / (1 + math.exp(beta * (ratio - 0.5)))))
    return best
