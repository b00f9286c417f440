"""Splits of a node by two clusters of its distributions (Chen et al. 2018).

2-means relabels the rows of a node to two clusters (section 3.1). A split is then as good as its information gain about
the clusters (Eq. 2). With integer counts of bootstrap draws, n draws of which ``ones`` are in cluster 1 have the
impurity n * Ent = n ln n - ones ln ones - (n - ones) ln(n - ones): three numbers of a table, no logarithm.

Two searches, ``exact_feature`` and ``adaptive_feature``, run along the rows in the order of their values with prefix
counts. They share these arguments: ``ids``, the listed rows of feature ``f`` from ``lo`` to ``hi`` in the numbering of
the tree; ``listed``, their values, rising; ``packed``, the counts of each row of the tree; ``best``, the split to beat.
Rows with the default value are not listed and count as one candidate.

Two others, ``histogram_feature`` and ``random_feature``, take rows in any order. They cost as much as the features that
they try, so they suit small feature subsets and large nodes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ldl.methods.forest.binning import BINS
from ldl.methods.numba_kernels import inlined, inlined_fast, midpoint

TWO_MEANS_ROUNDS = 20
"""Most rounds of 2-means; few nodes need more than five."""
NEAR = 1e-5
"""Relative difference below which distances count as equal, so that rounding decides nothing."""
TIE = 1e-9
"""Difference of gains, in nats, below which they are tied and the earlier candidate stays."""
ONES = 16
"""A row's packed count holds its draws in the lower 16 bits, and its draws in cluster 1 above them."""
MASK = (1 << ONES) - 1
WIDE = 32
"""A row's wide count holds its draws in the lower 32 bits, enough for any node, and those in cluster 1 above."""
SORTED_ROWS = 24
"""Most rows of a node that are sorted into place; a histogram of them would be mostly empty."""


class Node(NamedTuple):
    """Statistics of a node for a search.

    Attributes:
        n: Draws.
        ones: Draws in cluster 1.
        count: Distinct rows.
        min_leaf: Draws that each side of a split must keep.
        impurity: Impurity that a split must lower.
    """

    n: int
    ones: int
    count: int
    min_leaf: int
    impurity: float


class Split(NamedTuple):
    """The best split so far.

    Attributes:
        feature: int32, -1 for none.
        threshold: float32.
        impurity: Impurity of both sides together, which the next split must lower.
        evaluations: Number of candidates that were evaluated.
    """

    feature: int
    threshold: float
    impurity: float
    evaluations: int


@inlined_fast
def _dot(a: np.ndarray, i: int, b: np.ndarray) -> float:
    total = np.float32(0)
    for c in range(b.shape[0]):
        total += a[i, c] * b[c]
    return total


@inlined_fast
def _norm(a: np.ndarray, i: int) -> float:
    total = np.float32(0)
    for c in range(a.shape[1]):
        total += a[i, c] * a[i, c]
    return total


@inlined
def all_equal(codes: np.ndarray, samples: np.ndarray, rows: np.ndarray, lo: int, hi: int) -> bool:
    """Return whether rows lo..hi of a node have the same code, (N, C), in every entry."""
    first = samples[rows[lo]]
    for i in range(lo + 1, hi):
        sample = samples[rows[i]]
        for c in range(codes.shape[1]):
            if codes[sample, c] != codes[first, c]:
                return False
    return True


@inlined
def two_means(
    codes: np.ndarray, samples: np.ndarray, weights: np.ndarray, rows: np.ndarray, lo: int, hi: int,
    centred: np.ndarray, cluster: np.ndarray,
) -> int:  # fmt: skip
    """Cluster the codes of rows lo..hi, which must not all be equal, by 2-means.

    The rule is deterministic. The first centres are the row farthest from the node's mean (the first one by row number)
    and its mirror image. A row belongs to cluster 1 if that centre is nearer by more than ``NEAR`` of the squared
    distance between the centres. Then the centres become the means of the clusters, until no row moves, for at most
    ``TWO_MEANS_ROUNDS`` rounds.

    With the node's mean at 0, the two means lie on one line through 0 on opposite sides. So the sum over cluster 1
    determines both, and a round costs one scalar product per row.

    Args:
        codes: (N, C) float32.
        samples: Row of ``codes`` of each row of the tree.
        weights: Draws of each row of the tree.
        rows: Rows of the tree, by node.
        lo: First row of the node in ``rows``.
        hi: One past its last row.
        centred: (at least hi - lo, C) float32, scratch memory.
        cluster: (at least hi - lo) uint8, is filled with 0 or 1 for each row of the node.

    Returns:
        Draws in cluster 1; neither cluster is empty.
    """
    count, width = hi - lo, codes.shape[1]
    if count == 2:
        cluster[0], cluster[1] = 0, 1
        return weights[rows[lo + 1]]
    sums = np.zeros(width)
    total = 0
    for i in range(lo, hi):
        sample, weight = samples[rows[i]], weights[rows[i]]
        total += weight
        for c in range(width):
            sums[c] += weight * np.float64(codes[sample, c])
    for c in range(width):
        sums[c] /= total
    farthest = np.float32(0)
    for i in range(count):
        sample = samples[rows[lo + i]]
        for c in range(width):
            centred[i, c] = np.float32(codes[sample, c] - sums[c])
        farthest = max(farthest, _norm(centred, i))
    direction = np.zeros(width, np.float32)
    for i in range(count):
        if _norm(centred, i) >= farthest * (1 - NEAR):
            direction[:] = centred[i]
            break

    sums[:] = 0
    ones = 0
    cluster[:count] = 0
    cut = 2 * NEAR * farthest
    for _ in range(TWO_MEANS_ROUNDS):
        moved = False
        for i in range(count):
            now = np.uint8(_dot(centred, i, direction) > cut)
            if now != cluster[i]:
                moved = True
                cluster[i] = now
                weight = weights[rows[lo + i]]
                sign = weight if now else -weight
                ones += sign
                for c in range(width):
                    sums[c] += sign * np.float64(centred[i, c])
        if not moved:
            break
        squared = 0.0
        for c in range(width):
            direction[c] = sums[c]
            squared += sums[c] * sums[c]
        one, zero = 1 / ones, 1 / (total - ones)
        cut = squared * (0.5 * (one - zero) + NEAR * (one + zero))
    return ones


def log_table(size: int) -> np.ndarray:
    """Return k ln k for k = 0..size, float64."""
    k = np.arange(size + 1, dtype=np.float64)
    return k * np.log(np.maximum(k, 1.0))


@inlined
def impurity(table: np.ndarray, n: int, ones: int) -> float:
    """Return n times the entropy, in nats. Swapping the clusters gives the same bits."""
    return table[n] - (table[ones] + table[n - ones])


@inlined
def _split_impurity(table: np.ndarray, node: Node, left: int, left_ones: int) -> float:
    """Return the impurity of both sides together. Swapping the sides gives the same bits."""
    return impurity(table, left, left_ones) + impurity(table, node.n - left, node.ones - left_ones)


@inlined
def better(best: Split, node: Node, score: float, feature: int, threshold: float) -> Split:
    """Return the best split after one more candidate, of impurity ``score``, was evaluated."""
    if score < best.impurity - TIE * node.n:
        return Split(feature, threshold, score, best.evaluations + 1)
    return Split(best.feature, best.threshold, best.impurity, best.evaluations + 1)


@inlined
def default_rows(
    ids: np.ndarray, listed: np.ndarray, packed: np.ndarray, node: Node, lo: int, hi: int, default: float
) -> tuple[int, int, int]:
    """Return the place of the default value among the listed ones, and the draws (all, in cluster 1) that have it."""
    if hi - lo == node.count:
        return hi, 0, 0
    draws, in_one = node.n, node.ones
    for i in range(lo, hi):
        entry = packed[ids[i]]
        draws -= entry & MASK
        in_one -= entry >> ONES
    position = np.int64(lo)
    while position < hi and listed[position] < default:
        position += 1
    return position, draws, in_one


@inlined
def exact_feature(
    ids: np.ndarray, listed: np.ndarray, packed: np.ndarray, table: np.ndarray, node: Node, f: int, lo: int, hi: int,
    default: float, block: int, best: Split,
) -> Split:  # fmt: skip
    """Return the best of all midpoints of feature f, or ``best``.

    Counts are taken in blocks. Whatever the order of the rows in a block, its counts lie in a rectangle, and impurity
    is concave, so no candidate inside beats the corners of the rectangle. A block whose corners do not beat ``best`` is
    skipped, so the search stays exact with a fraction of the evaluations.
    """
    n, min_leaf = node.n, node.min_leaf
    position, draws, in_one = default_rows(ids, listed, packed, node, lo, hi, default)
    # Up to the default value, which follows if any row has it, then on to the end.
    i, stop = lo, position
    after = default if draws else np.float32(np.nan)
    left, left_ones = 0, 0
    start = _split_impurity(table, node, left, left_ones)
    while i < hi:
        if i == stop:
            left, left_ones = left + draws, left_ones + in_one
            start = _split_impurity(table, node, left, left_ones)
            if left >= min_leaf and n - left >= min_leaf:
                best = better(best, node, start, f, midpoint(default, listed[i]))
            stop, after = hi, np.float32(np.nan)
        end = min(i + block, stop)
        if block > 1:
            total = 0
            for k in range(i, end):
                total += packed[ids[k]]
            more, more_ones = total & MASK, total >> ONES
            before, start = start, _split_impurity(table, node, left + more, left_ones + more_ones)
            bound = min(
                min(before, start),
                _split_impurity(table, node, left + more_ones, left_ones + more_ones),
                _split_impurity(table, node, left + more - more_ones, left_ones),
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
                best = better(best, node, _split_impurity(table, node, left, left_ones), f, midpoint(below, above))
            below = above
        i = end
    return best


@inlined
def adaptive_feature(
    ids: np.ndarray, listed: np.ndarray, packed: np.ndarray, table: np.ndarray, node: Node, f: int, lo: int, hi: int,
    default: float, alpha: float, beta: float, best: Split,
) -> Split:  # fmt: skip
    """Return the best midpoint met in steps of alpha N / (1 + exp(beta (g / g_max - 1/2))), or ``best`` (Eq. 5).

    N is the number of rows, g the last gain, g_max the best gain so far over all features of the node. While g_max is
    0, the ratio counts as 1. A step is at least 1. A step that ends between rows of equal value continues to the last.
    """
    n, min_leaf = node.n, node.min_leaf
    position, draws, in_one = default_rows(ids, listed, packed, node, lo, hi, default)
    whole = impurity(table, n, node.ones)
    left, left_ones = 0, 0
    i, wait, missing = lo, 1, draws > 0
    while i < hi or missing:
        if missing and i == position:
            below, missing = default, False
            left, left_ones, wait = left + draws, left_ones + in_one, wait - 1
        else:
            # Rows inside a step are only counted.
            end = min(i + max(wait, 1), position if missing else hi)
            wait -= end - i
            while i < end:
                entry = packed[ids[i]]
                left += entry & MASK
                left_ones += entry >> ONES
                i += 1
            below = listed[i - 1]
        if wait > 0 or not (missing or i < hi):
            continue
        above = default if missing and i == position else listed[i]
        if not below < above or left < min_leaf or n - left < min_leaf:
            continue
        score = _split_impurity(table, node, left, left_ones)
        best = better(best, node, score, f, midpoint(below, above))
        top = whole - best.impurity
        ratio = (whole - score) / top if top > TIE * n else 1.0
        wait = max(1, int(alpha * node.count / (1 + math.exp(beta * (ratio - 0.5)))))
    return best


@inlined
def histogram_feature(
    codes: np.ndarray, low: np.ndarray, high: np.ndarray, node_rows: np.ndarray, counts: np.ndarray, table: np.ndarray,
    node: Node, f: int, best: Split,
) -> tuple[Split, bool]:  # fmt: skip
    """Return the best midpoint between occupied bins of feature f, or ``best``, and whether f is constant in the node.

    Bins have ``codes`` and extend from ``low`` to ``high``; ``counts`` belong to the ``node_rows``.
    """
    bins = np.empty(BINS, np.int64)
    sums = np.empty(BINS, np.int64)
    used = 0
    if len(node_rows) <= SORTED_ROWS:
        for i in range(len(node_rows)):
            code = np.int64(codes[node_rows[i]])
            slot = used
            while slot > 0 and bins[slot - 1] >= code:
                slot -= 1
            if slot < used and bins[slot] == code:
                sums[slot] += counts[i]
                continue
            for k in range(used, slot, -1):
                bins[k], sums[k] = bins[k - 1], sums[k - 1]
            bins[slot], sums[slot] = code, counts[i]
            used += 1
    else:
        histogram = np.zeros(BINS, np.int64)
        for i in range(len(node_rows)):
            histogram[codes[node_rows[i]]] += counts[i]
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
            best = better(best, node, _split_impurity(table, node, left, left_ones), f, threshold)
    return best, used == 1


@inlined
def random_feature(
    column: np.ndarray, node_rows: np.ndarray, counts: np.ndarray, table: np.ndarray, node: Node, f: int, share: float,
    best: Split,
) -> tuple[Split, bool]:  # fmt: skip
    """Evaluate the threshold at ``share`` of the range of the values; return as :func:`histogram_feature` does."""
    threshold, constant = between(column, node_rows, share)
    if constant:
        return best, True
    total = np.int64(0)
    for i in range(len(node_rows)):
        total += counts[i] * (column[node_rows[i]] <= threshold)
    left, left_ones = total & 0xFFFFFFFF, total >> WIDE
    if left >= node.min_leaf and node.n - left >= node.min_leaf:
        best = better(best, node, _split_impurity(table, node, left, left_ones), f, threshold)
    return best, False


@inlined
def between(column: np.ndarray, node_rows: np.ndarray, share: float) -> tuple[float, bool]:
    """Return the threshold at ``share`` of the range from the smallest to the largest value, and whether it is 0."""
    smallest = largest = column[node_rows[0]]
    for i in range(1, len(node_rows)):
        value = column[node_rows[i]]
        smallest = min(smallest, value)
        largest = max(largest, value)
    threshold = np.float32(smallest + share * (np.float64(largest) - np.float64(smallest)))
    return (threshold if threshold < largest else smallest), smallest == largest
