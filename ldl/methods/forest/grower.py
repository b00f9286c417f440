"""Grows one tree over flat arrays (Chen et al. 2018, Algorithm 1).

The parts that can be exchanged are functions of other files: the relabelling of a node's rows to two clusters
(``relabel``) and the search for the split that tells these best (``search``). What a leaf holds is not the grower's
business: it says which rows end in which leaf.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.columns import Columns
from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.forest.divergence import make_mass, node_divergence
from ldl.methods.forest.impurity import Node, impurity
from ldl.methods.forest.ordered import ONES
from ldl.methods.forest.parting import partition, partition_listed, send, take_listed
from ldl.methods.forest.relabel import all_equal, two_means
from ldl.methods.forest.search import ADAPTIVE, CLUSTERS, EXACT, Rules, search
from ldl.methods.forest.unordered import WIDE


class Tree(NamedTuple):
    """One tree of M nodes and L leaves. The root is node 0; a right child follows its left sibling.

    Attributes:
        feature: (M,) int32, the feature that splits, -1 in a leaf.
        threshold: (M,) float32; rows whose value is at most this go left.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        start: (L + 1,) int32; the training rows of leaf l are ``rows[start[l]:start[l + 1]]``.
        rows: Distinct training rows of the tree, by leaf, int32.
        weights: How often each of ``rows`` was drawn, int32.
        gain: (F,) float64, the sum of the gains of each feature's splits, each times its draws (nats).
        evaluations: How many candidate splits were computed, int64.
    """

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    gain: np.ndarray
    evaluations: int


@compiled
def grow(
    columns: Columns,
    samples: np.ndarray,
    weights: np.ndarray,
    codes: np.ndarray,
    table: np.ndarray,
    rules: Rules,
    state: np.ndarray,
) -> Tree:
    """Grow one tree.

    Args:
        columns: The features of the training set.
        samples: (n,) rows of it that this tree sees, distinct and rising, int32.
        weights: (n,) how often each counts, 1..255, int32.
        codes: (N, C) float32, what the rows of a node are relabelled by.
        table: k ln k up to the sum of ``weights``.
        rules: How it grows.
        state: (1,) uint64, its random numbers.
    """
    width, size = len(columns.default), len(samples)
    ordered = rules.search == EXACT or rules.search == ADAPTIVE
    rows, spare = np.empty(size, np.int32), np.empty(size, np.int32)
    for i in range(size):
        rows[i] = i
    right = np.zeros(size, np.uint8)
    packed = np.empty(size, np.int32)
    clusters = rules.criterion == CLUSTERS
    cluster = np.zeros(size, np.uint8)
    centred = np.empty((size if clusters else 0, codes.shape[1]), np.float32)
    mass = make_mass(codes, samples, weights, not clusters)
    unordered = 0 if ordered else size
    own, counts = np.empty(unordered, np.int32), np.empty(unordered, np.int64)
    # Row d + 1 is what the children of a node at depth d start from, left and right; both use the same features.
    live = np.empty((rules.depth + 2, width), np.int32)
    lo = np.empty((rules.depth + 2, 2, width if ordered else 0), np.int32)
    hi = np.empty_like(lo)
    # The listed rows that the tree sees, by node; a node that stays a leaf does not part its own.
    ids, listed = np.empty(len(columns.rows), np.int32), np.empty(len(columns.rows), np.float32)
    spare_listed = np.empty(size if ordered else 0, np.float32)
    if ordered:
        take_listed(columns, samples, lo[0, 0], hi[0, 0], ids, listed)
    for f in range(width):
        live[0, f] = f
    alive = np.empty(rules.depth + 2, np.int32)
    alive[0] = width

    draws = weights.sum()
    most = min(size, max(1, draws // rules.min_leaf), 1 << min(rules.depth, 31))
    feature, threshold = np.full(2 * most, -1, np.int32), np.zeros(2 * most, np.float32)
    child, start = np.zeros(2 * most, np.int32), np.empty(most + 1, np.int32)
    gain = np.zeros(width)
    nodes, leaves, evaluations = 1, 0, 0
    # Node, first row, one past the last, depth, side, whether it stays a leaf.
    stack = np.empty((rules.depth + 2, 6), np.int32)
    done = draws < rules.min_samples or rules.depth == 0 or all_equal(codes, samples, rows, 0, size)
    _push(stack, 0, 0, 0, size, 0, 0, done)
    waiting = 1
    while waiting:
        waiting -= 1
        node, first, last, depth, side, done = stack[waiting]
        found = False
        if not done:
            ones = two_means(codes, samples, weights, rows, first, last, centred, cluster) if clusters else 0
            n = 0
            for i in range(first, last):
                weight = weights[rows[i]]
                packed[rows[i]] = weight | (weight * cluster[i - first]) << ONES
                n += weight
                if not ordered:
                    own[i - first], counts[i - first] = samples[rows[i]], weight | (weight * cluster[i - first]) << WIDE
            count = last - first
            whole = impurity(table, n, ones) if clusters else node_divergence(mass, table, rows[first:last])
            best, alive[depth + 1] = search(
                columns, ids, listed, lo[depth, side], hi[depth, side], live[depth : depth + 2], alive[depth],
                packed, own[:count], counts[:count], table, Node(n, ones, count, rules.min_leaf, whole),
                rows[first:last], mass, rules, state,
            )  # fmt: skip
            evaluations += best.evaluations
            found = best.feature >= 0
        if not found:
            child[node], start[leaves] = leaves, first
            leaves += 1
            continue
        gain[best.feature] += whole - best.impurity
        feature[node], threshold[node], child[node] = best.feature, best.threshold, nodes
        send(columns, samples, rows[first:last], best, rules, right)
        if ordered:
            for k in range(lo[depth, side, best.feature], hi[depth, side, best.feature]):
                right[ids[k]] = listed[k] > best.threshold
        middle = partition(rows, spare, right, first, last)
        grows = False
        # The left child lies on top, so leaves are numbered from left to right, as their rows are.
        for at in range(2):
            begin, end = (middle, last) if at == 0 else (first, middle)
            n = 0
            for i in range(begin, end):
                n += weights[rows[i]]
            done = (
                depth + 1 >= rules.depth
                or n < rules.min_samples
                or n < 2 * rules.min_leaf
                or all_equal(codes, samples, rows, begin, end)
            )
            grows |= not done
            _push(stack, waiting, nodes + 1 - at, begin, end, depth + 1, 1 - at, done)
            waiting += 1
        nodes += 2
        if ordered and grows:
            for k in range(alive[depth + 1]):
                f = live[depth + 1, k]
                begin, end = lo[depth, side, f], hi[depth, side, f]
                middle = partition_listed(ids, listed, spare, spare_listed, right, begin, end)
                lo[depth + 1, 0, f], hi[depth + 1, 0, f] = begin, middle
                lo[depth + 1, 1, f], hi[depth + 1, 1, f] = middle, end
    start[leaves] = size
    drawn = weights[rows]
    return Tree(
        feature[:nodes].copy(), threshold[:nodes].copy(), child[:nodes].copy(), start[: leaves + 1].copy(),
        samples[rows], drawn, gain, evaluations,
    )  # fmt: skip


@inlined
def _push(stack: np.ndarray, at: int, node: int, first: int, last: int, depth: int, side: int, done: bool) -> None:
    entry = stack[at]
    entry[0], entry[1], entry[2], entry[3], entry[4], entry[5] = node, first, last, depth, side, done
