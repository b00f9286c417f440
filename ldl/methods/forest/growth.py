"""Nodes of a growing boosted tree, and the compiled loop that searches and splits them one after the other.

Depth-wise growth takes the latest open node, leaf-wise growth the one with the largest gain (best-first, Shi 2007).
Only the histogram of the smaller child is made; that of the other child is the parent's less it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.binning import FeatureBins, Shares, share_of
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.histograms import (
    TINY,
    TOGETHER,
    Histogram,
    Newton,
    accumulate,
    best_split,
    subtract,
    total,
)
from ldl.methods.forest.random_thresholds import LANES, RowCodes, best_random_split
from ldl.methods.numba_kernels import compiled, inlined, midpoint, partition

COMPLETE, NEEDS_SEARCH, NEEDS_MEMORY = range(3)
"""What :func:`grow_on` returns: the tree is complete, the newest nodes await a search, or no histogram is free."""
COUNT, SEARCHED, OPEN, FREE = range(4)
"""Entries of ``Nodes.state``: nodes, nodes that were searched, open nodes, and free histograms."""


class TrainingSet(NamedTuple):
    """What trees are grown from.

    Attributes:
        bins: The training rows.
        shares: The features of each thread.
        codes: The bins row by row, for random thresholds.
        features: Features that the tree may split by, rising, int64.
        derivatives: (N, 2 W) float32, the gradients of W outputs and their second derivatives.
        rows: (n,) int32, the rows of the tree, each once; their order changes.
        spare: (N,) int32, scratch memory.
        right: (N,) uint8, scratch memory.
    """

    bins: FeatureBins
    shares: Shares
    codes: RowCodes
    features: np.ndarray
    derivatives: np.ndarray
    rows: np.ndarray
    spare: np.ndarray
    right: np.ndarray


class Limits(NamedTuple):
    """Limits of the growth of a tree.

    Attributes:
        depth: Splits on the longest path.
        leaves: Leaves of leaf-wise growth; 0 for depth-wise growth.
        additions: Additions from which :func:`grow_on` leaves a search to its caller.
    """

    depth: int
    leaves: int
    additions: int


class Nodes(NamedTuple):
    """The M nodes that a growing tree may have, and S histograms.

    Attributes:
        rows: (M, 2) int64, the first of the tree's rows and one past the last.
        depth: (M,) int64.
        sums: (M, 2 W) float64, sums of the derivatives.
        split: (M, 5) float64, the best split of a searched node, see :class:`.histograms.BinSplit`.
        child: (M,) int64, the left child, -1 for none.
        slot: (M,) int64, the node's histogram, -1 for none.
        open: (M,) int64, nodes that may be split next, in order.
        free: (S,) int64, the free histograms.
        state: (4,) int64, see ``COUNT``.
        draws: (1,) uint64, the initial state of the random numbers of the tree.
    """

    rows: np.ndarray
    depth: np.ndarray
    sums: np.ndarray
    split: np.ndarray
    child: np.ndarray
    slot: np.ndarray
    open: np.ndarray
    free: np.ndarray
    state: np.ndarray
    draws: np.ndarray


@compiled
def make_nodes(data: TrainingSet, rules: Newton, limits: Limits, histograms: int, draws: int) -> Nodes:
    """Return the nodes of a tree that has only its root yet, which takes the last of the histograms, if any."""
    leaves = max(1, len(data.rows) // max(1, rules.min_leaf))
    if limits.leaves:
        leaves = min(leaves, limits.leaves)
    if limits.depth < 31:
        leaves = min(leaves, 1 << limits.depth)
    most, width = 2 * leaves - 1, data.derivatives.shape[1]
    nodes = Nodes(
        np.empty((most, 2), np.int64), np.empty(most, np.int64), np.empty((most, width)), np.zeros((most, 5)),
        np.full(most, -1), np.empty(most, np.int64), np.empty(most, np.int64), np.arange(histograms),
        np.zeros(4, np.int64), np.empty(1, np.uint64),
    )  # fmt: skip
    nodes.draws[0] = draws
    nodes.rows[0, 0], nodes.rows[0, 1], nodes.depth[0] = 0, len(data.rows), 0
    nodes.sums[0] = total(data.derivatives, data.rows)
    nodes.state[COUNT] = 1
    nodes.slot[0] = histograms - 1
    nodes.state[FREE] = max(0, histograms - 1)
    return nodes


@compiled
def grow_on(
    data: TrainingSet, rules: Newton, limits: Limits, nodes: Nodes, histograms: Histogram, is_searched: bool
) -> int:
    """Search and split nodes until the tree is complete or the caller must act, and return which.

    Args:
        data: What the tree is grown from.
        rules: Hyperparameters of splits.
        limits: Hyperparameters of the growth.
        nodes: The nodes so far.
        histograms: (S, B, 2 W) sums and (S, B) rows; none are needed for random thresholds.
        is_searched: Whether the caller has searched the newest nodes, because of ``NEEDS_SEARCH``.
    """
    state = nodes.state
    splits = np.empty((2, 5))
    while True:
        first, last = state[SEARCHED], state[COUNT]
        if first < last and not is_searched and _may_split_any(rules, limits, nodes, first, last):
            if additions(data, rules, limits, nodes) >= limits.additions:
                return NEEDS_SEARCH
            for share in range(len(data.shares.cuts) - 1):
                search(data, rules, limits, nodes, histograms, share, splits)
                for at in range(last - first):
                    if splits[at, 0] > nodes.split[first + at, 0]:
                        nodes.split[first + at] = splits[at]
        is_searched = False
        for number in range(first, last):
            _open_or_free(nodes, number)
        state[SEARCHED] = last
        if not state[OPEN] or (limits.leaves and state[COUNT] // 2 + 1 >= limits.leaves):
            return COMPLETE
        if not rules.random and not state[FREE]:
            return NEEDS_MEMORY
        _split_node(data, rules, nodes, _take_open(limits, nodes))


@inlined
def _may_split(rules: Newton, limits: Limits, nodes: Nodes, number: int) -> bool:
    count = nodes.rows[number, 1] - nodes.rows[number, 0]
    return nodes.depth[number] < limits.depth and count >= max(2, 2 * rules.min_leaf)


@inlined
def _may_split_any(rules: Newton, limits: Limits, nodes: Nodes, first: int, last: int) -> bool:
    return _may_split(rules, limits, nodes, first) or _may_split(rules, limits, nodes, last - 1)


@inlined
def _smallest(nodes: Nodes, first: int, last: int) -> int:
    """Return the node with fewer rows of one or two nodes, the first of equal ones."""
    one = nodes.rows[first, 1] - nodes.rows[first, 0]
    return first if one <= nodes.rows[last - 1, 1] - nodes.rows[last - 1, 0] else last - 1


@compiled
def additions(data: TrainingSet, rules: Newton, limits: Limits, nodes: Nodes) -> int:
    """Return about how many additions a search of the newest nodes makes, of which many may be one instruction."""
    first, last = nodes.state[SEARCHED], nodes.state[COUNT]
    if rules.random:
        count = (nodes.rows[last - 1, 1] - nodes.rows[first, 0]) // LANES
    else:
        small = _smallest(nodes, first, last)
        count = nodes.rows[small, 1] - nodes.rows[small, 0]
    return count * len(data.features) * data.derivatives.shape[1]


@compiled
def search(
    data: TrainingSet, rules: Newton, limits: Limits, nodes: Nodes, histograms: Histogram, number: int,
    splits: np.ndarray,
) -> None:  # fmt: skip
    """Write the best split of each of the one or two newest nodes within a share to ``splits`` (2, 5).

    At first the histogram of the node with more rows is that of both.
    """
    share, rows = share_of(data.shares, number), data.rows
    first, last = nodes.state[SEARCHED], nodes.state[COUNT]
    splits[:] = 0.0
    if not rules.random:
        small = _smallest(nodes, first, last)
        sums, counts = histograms.sums, histograms.rows
        made = Histogram(sums[nodes.slot[small]], counts[nodes.slot[small]])
        node_rows = rows[nodes.rows[small, 0] : nodes.rows[small, 1]]
        accumulate(data.bins, share, data.features, data.derivatives, node_rows, nodes.sums[small], made)
        for large in range(first, last):
            if large != small:
                both = Histogram(sums[nodes.slot[large]], counts[nodes.slot[large]])
                subtract(data.bins, share, data.features, both, made)
    for at in range(last - first):
        node = first + at
        if _may_split(rules, limits, nodes, node):
            node_rows = rows[nodes.rows[node, 0] : nodes.rows[node, 1]]
            if rules.random:
                best_random_split(
                    data.bins, data.shares, number, data.codes, data.features, data.derivatives, node_rows,
                    nodes.sums[node], rules, nodes.draws, node, splits[at],
                )  # fmt: skip
            else:
                of_node = Histogram(histograms.sums[nodes.slot[node]], histograms.rows[nodes.slot[node]])
                best_split(
                    data.bins, share, data.features, of_node, nodes.sums[node], len(node_rows), rules, splits[at]
                )


@inlined
def _open_or_free(nodes: Nodes, number: int) -> None:
    """Open a searched node if it has a split, or give its histogram back."""
    state = nodes.state
    if nodes.split[number, 0] > 0:
        nodes.open[state[OPEN]] = number
        state[OPEN] += 1
    elif nodes.slot[number] >= 0:
        nodes.free[state[FREE]] = nodes.slot[number]
        state[FREE] += 1


@inlined
def _take_open(limits: Limits, nodes: Nodes) -> int:
    """Remove the node to split next from the open ones: the latest, or leaf-wise the earliest of the largest gain."""
    count = nodes.state[OPEN]
    best = count - 1
    if limits.leaves:
        best = 0
        for at in range(1, count):
            if nodes.split[nodes.open[at], 0] > nodes.split[nodes.open[best], 0]:
                best = at
    number = nodes.open[best]
    for at in range(best, count - 1):
        nodes.open[at] = nodes.open[at + 1]
    nodes.state[OPEN] = count - 1
    return number


@compiled
def _split_node(data: TrainingSet, rules: Newton, nodes: Nodes, number: int) -> None:
    """Divide the rows of a node among two new nodes."""
    state, split = nodes.state, nodes.split[number]
    start, stop = nodes.rows[number, 0], nodes.rows[number, 1]
    rows, feature = data.rows[start:stop], np.int64(split[1])
    filled = np.int64(data.bins.filled[feature])
    codes, below, missing_left = data.bins.codes[feature], np.int64(split[2]), split[4] > 0
    left = start + _partition_codes(codes, rows, data.spare, data.right, below, filled, missing_left)
    child = state[COUNT]
    nodes.child[number], state[COUNT] = child, child + 2
    nodes.rows[child, 0], nodes.rows[child, 1] = start, left
    nodes.rows[child + 1, 0], nodes.rows[child + 1, 1] = left, stop
    nodes.depth[child : child + 2] = nodes.depth[number] + 1
    small = _smallest(nodes, child, child + 2)
    large = 2 * child + 1 - small
    nodes.sums[small] = total(data.derivatives, data.rows[nodes.rows[small, 0] : nodes.rows[small, 1]])
    # For a large node, summing the larger child as well would cost much and gain only the last bit.
    if stop - start > TOGETHER:
        nodes.sums[large] = nodes.sums[number] - nodes.sums[small]
    else:
        nodes.sums[large] = total(data.derivatives, data.rows[nodes.rows[large, 0] : nodes.rows[large, 1]])
    nodes.slot[small], nodes.slot[large] = -1, nodes.slot[number]
    if not rules.random:
        state[FREE] -= 1
        nodes.slot[small] = nodes.free[state[FREE]]


@inlined
def _partition_codes(
    codes: np.ndarray, rows: np.ndarray, spare: np.ndarray, right: np.ndarray, below: int, missing: int,
    missing_left: bool,
) -> int:  # fmt: skip
    """Move the rows that go left to the front, keep both sides in order, and return how many they are."""
    for row in rows:
        code = np.int64(codes[row])
        right[row] = not missing_left if code == missing else code > below
    return partition(rows, spare, right, 0, len(rows))


@compiled
def read_tree(nodes: Nodes, bins: FeatureBins, learning_rate: float, l2: float) -> FlatTree:
    """Return the tree, whose leaf values are Newton steps times the learning rate."""
    count, width = nodes.state[COUNT], nodes.sums.shape[1] // 2
    tree = FlatTree(
        np.full(count, -1, np.int32), np.zeros(count, np.float32), np.zeros(count, np.int32),
        np.empty((count // 2 + 1, width), np.float32), np.zeros(count, np.bool_), np.zeros(count),
    )  # fmt: skip
    leaf = 0
    for node in range(count):
        if nodes.child[node] >= 0:
            split = nodes.split[node]
            feature, below, above = np.int64(split[1]), np.int64(split[2]), np.int64(split[3])
            tree.feature[node], tree.child[node], tree.gain[node] = feature, nodes.child[node], split[0]
            tree.missing_left[node], tree.threshold[node] = split[4] > 0, np.inf
            if above >= 0:
                tree.threshold[node] = midpoint(bins.high[feature, below], bins.low[feature, above])
        else:
            for c in range(width):
                hessian = nodes.sums[node, width + c]
                tree.values[leaf, c] = -learning_rate * nodes.sums[node, c] / max(hessian + l2, TINY)
            tree.child[node] = leaf
            leaf += 1
    return tree
