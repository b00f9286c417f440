"""Grows one tree over binned patches whose labels are segmentations (Dollar & Zitnick 2015, Sec. 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.relabel import PAIRS, SAMPLE, draw_pairs, middle_segments, two_classes
from ldl.forest.compiled import compiled, inlined
from ldl.forest.draws import next_bits
from ldl.forest.parting import partition


class PatchTree(NamedTuple):
    """One tree of M nodes and L leaves. The root is node 0; a right child follows its left sibling.

    Attributes:
        feature: (M,) int32, the feature that splits, in the tree's own numbering; -1 in a leaf.
        cut: (M,) uint8; patches whose bin is at most this go left.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        middle: (L,) int32, the training patch whose segmentation the leaf answers.
        start: (L + 1,) int32; the patches of leaf l are ``rows[start[l]:start[l + 1]]``.
        rows: (N,) int32, the training patches by leaf.
    """

    feature: np.ndarray
    cut: np.ndarray
    child: np.ndarray
    middle: np.ndarray
    start: np.ndarray
    rows: np.ndarray


@compiled
def grow(
    codes: np.ndarray, segments: np.ndarray, tries: int, depth: int, min_leaf: int, state: np.ndarray
) -> PatchTree:
    """Grow one tree.

    Args:
        codes: (F, N) uint8, binned features.
        segments: (N, S) uint8, segmentations.
        tries: Features tried at each node, drawn without replacement.
        depth: Splits on the longest path.
        min_leaf: Patches that each side of a split must keep.
        state: (1,) uint64, random numbers.
    """
    width, size = codes.shape
    rows, spare = np.arange(size).astype(np.int32), np.empty(size, np.int32)
    right, labels = np.zeros(size, np.uint8), np.empty(size, np.uint8)
    pairs = np.empty((PAIRS, 2), np.int32)
    scratch = np.empty((min(size, SAMPLE), PAIRS), np.float32)
    order = np.arange(width)
    most = 2 * (size // max(min_leaf, 1)) + 1
    feature, cut, child = np.full(most, -1, np.int32), np.zeros(most, np.uint8), np.zeros(most, np.int32)
    middle, start = np.empty(most, np.int32), np.empty(most + 1, np.int32)
    # Node, first row, one past the last, depth.
    stack = np.empty((depth + 2, 4), np.int32)
    _push(stack, 0, 0, 0, size, 0)
    waiting, nodes, leaves = 1, 1, 0
    while waiting:
        waiting -= 1
        node, first, last, level = stack[waiting]
        own = rows[first:last]
        draw_pairs(segments.shape[1], state, pairs)
        f = -1
        if level < depth and last - first >= 2 * min_leaf:
            ones = two_classes(segments, own, pairs, scratch, state, labels)
            f, at = best_split(codes, own, labels, ones, tries, min_leaf, order, state)
        if f < 0:
            child[node], start[leaves] = leaves, first
            middle[leaves] = middle_segments(segments, own, pairs)
            leaves += 1
            continue
        feature[node], cut[node], child[node] = f, at, nodes
        for row in own:
            right[row] = codes[f, row] > at
        border = partition(rows, spare, right, first, last)
        # The left child lies on top, so leaves are numbered from left to right, as their rows are.
        _push(stack, waiting, nodes + 1, border, last, level + 1)
        _push(stack, waiting + 1, nodes, first, border, level + 1)
        waiting += 2
        nodes += 2
    start[leaves] = size
    return PatchTree(
        feature[:nodes].copy(), cut[:nodes].copy(), child[:nodes].copy(), middle[:leaves].copy(),
        start[: leaves + 1].copy(), rows,
    )  # fmt: skip


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
        other = k + int(next_bits(state) % np.uint64(width - k))
        order[k], order[other] = order[other], order[k]
        column = codes[order[k]]
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


@inlined
def _purity(count: int, ones: int) -> float:
    zeros = count - ones
    return (np.float64(ones) * ones + np.float64(zeros) * zeros) / count


@inlined
def _push(stack: np.ndarray, at: int, node: int, first: int, last: int, level: int) -> None:
    entry = stack[at]
    entry[0], entry[1], entry[2], entry[3] = node, first, last, level
