"""Grow the trees of a forest over flat arrays (Chen et al. 2018, Algorithm 1), in threads.

The samples and the random numbers of a tree depend only on the seed and its number. :func:`search` finds the best split
of a node with one of the searches of :mod:`.cluster_splits` and :mod:`.divergence_splits`; :func:`grow` splits nodes
depth first; :func:`fitted_tree` computes the values of the leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ldl.methods.forest.binning import ColumnLayout, ForestColumns, make_columns
from ldl.methods.forest.cluster_splits import (
    ONES,
    TIE,
    WIDE,
    Node,
    Split,
    adaptive_feature,
    all_equal,
    exact_feature,
    histogram_feature,
    impurity,
    log_table,
    random_feature,
    two_means,
)
from ldl.methods.forest.divergence_splits import (
    Mass,
    binned_feature,
    drawn_feature,
    make_mass,
    node_divergence,
    ordered_feature,
)
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.sampling import bootstrap, draws_of, stream
from ldl.methods.numba_kernels import compiled, inlined, next_bits, next_share, partition

EXACT, ADAPTIVE, HISTOGRAM, RANDOM = range(4)
LAYOUTS: tuple[ColumnLayout, ...] = ("ordered", "ordered", "binned", "plain")
"""The layout of the features that each search needs."""
CLUSTERS, LOG_LOSS = range(2)


class GrowthRules(NamedTuple):
    """Hyperparameters of a tree; see :class:`ldl.heads.structrf.StructRF`."""

    search: int
    depth: int
    min_samples: int
    min_leaf: int
    min_gain: float
    tries: int
    alpha: float
    beta: float
    block: int
    criterion: int = CLUSTERS


class Tree(NamedTuple):
    """A grown tree of M nodes and L leaves, numbered as in :mod:`.flat`.

    Attributes:
        feature: (M,) int32, the feature of a split, -1 in a leaf.
        threshold: (M,) float32; rows with a value of at most this go left.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        start: (L + 1,) int32; the training rows of leaf l are ``rows[start[l]:start[l + 1]]``.
        rows: Distinct training rows of the tree, by leaf, int32.
        weights: Draws of each of ``rows``, int32.
        gain: (F,) float64, the sum of the gains of each feature's splits, each times its draws (nats).
        evaluations: Number of candidate splits that were evaluated, int64.
    """

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    gain: np.ndarray
    evaluations: int


def grow_trees(
    features: np.ndarray, codes: np.ndarray, rules: GrowthRules, numbers: Iterable[int], *, sampling: float = 0.8,
    replace: bool = True, bins: int = 256, seed: int = 0, threads: int = 1, weight: np.ndarray | None = None,
) -> Iterator[Tree]:  # fmt: skip
    """Yield the trees with these numbers, in order, as they are done.

    Args:
        features: (N, F), finite.
        codes: (N, C), the distributions by which nodes are split.
        rules: Hyperparameters.
        numbers: Numbers of the trees in the forest.
        sampling: Draws of a tree, as a share of N.
        replace: Whether rows are drawn with replacement.
        bins: Bins of a feature for ``HISTOGRAM``, at most 256.
        seed: Seed of the forest.
        threads: Trees that grow at a time.
        weight: (N,) weights by which rows are drawn; None draws all equally.
    """
    # One layout and dtype of every argument: numba compiles for each layout and dtype.
    codes = np.ascontiguousarray(codes, np.float32)
    columns = make_columns(np.asarray(features, np.float32), LAYOUTS[rules.search], bins, threads)
    table = log_table(draws_of(len(codes), sampling, weight))

    def one(number: int) -> Tree:
        rows, weights = bootstrap(len(codes), sampling, replace, seed, number, weight)
        return grow(columns, rows, weights, codes, table, rules, stream(seed, number))

    if threads == 1:
        yield from map(one, numbers)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(one, numbers)


def fitted_tree(tree: Tree, target: np.ndarray) -> FlatTree:
    """Return the flat tree with the means of ``target``, (N, C) float32, as the values of its leaves."""
    values = np.empty((len(tree.start) - 1, target.shape[1]), np.float32)
    _leaf_means(tree.start, tree.rows, tree.weights, target, values)
    return FlatTree(tree.feature, tree.threshold, tree.child, values)


@compiled
def _leaf_means(
    start: np.ndarray, rows: np.ndarray, weights: np.ndarray, target: np.ndarray, means: np.ndarray
) -> None:
    width = target.shape[1]
    sums = np.empty(width)
    for leaf in range(len(means)):
        sums[:] = 0
        total = 0
        for i in range(start[leaf], start[leaf + 1]):
            total += weights[i]
            for c in range(width):
                sums[c] += weights[i] * np.float64(target[rows[i], c])
        for c in range(width):
            means[leaf, c] = sums[c] / total


@compiled
def grow(
    columns: ForestColumns, samples: np.ndarray, weights: np.ndarray, codes: np.ndarray, table: np.ndarray,
    rules: GrowthRules, state: np.ndarray,
) -> Tree:  # fmt: skip
    """Grow one tree.

    Args:
        columns: The features of the training set.
        samples: (n,) training rows of this tree, distinct and rising, int32.
        weights: (n,) draws of each, 1..255, int32.
        codes: (N, C) float32, the distributions by which nodes are split.
        table: k ln k up to the sum of ``weights``.
        rules: Hyperparameters.
        state: (1,) uint64, the state of the random generator.
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
    node_rows, counts = np.empty(unordered, np.int32), np.empty(unordered, np.int64)
    # Row d + 1 holds the start of the children of a node at depth d, left and right; both use the same features.
    live = np.empty((rules.depth + 2, width), np.int32)
    lo = np.empty((rules.depth + 2, 2, width if ordered else 0), np.int32)
    hi = np.empty_like(lo)
    # The listed rows of the tree, by node; a node that stays a leaf does not partition its own.
    ids, listed = np.empty(len(columns.rows), np.int32), np.empty(len(columns.rows), np.float32)
    spare_listed = np.empty(size if ordered else 0, np.float32)
    if ordered:
        _take_listed(columns, samples, lo[0, 0], hi[0, 0], ids, listed)
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
        is_split = False
        if not done:
            ones = two_means(codes, samples, weights, rows, first, last, centred, cluster) if clusters else 0
            n = 0
            for i in range(first, last):
                weight = weights[rows[i]]
                packed[rows[i]] = weight | (weight * cluster[i - first]) << ONES
                n += weight
                if not ordered:
                    node_rows[i - first] = samples[rows[i]]
                    counts[i - first] = weight | (weight * cluster[i - first]) << WIDE
            count = last - first
            whole = impurity(table, n, ones) if clusters else node_divergence(mass, table, rows[first:last])
            best, alive[depth + 1] = search(
                columns, ids, listed, lo[depth, side], hi[depth, side], live[depth : depth + 2], alive[depth],
                packed, node_rows[:count], counts[:count], table, Node(n, ones, count, rules.min_leaf, whole),
                rows[first:last], mass, rules, state,
            )  # fmt: skip
            evaluations += best.evaluations
            is_split = best.feature >= 0
        if not is_split:
            child[node], start[leaves] = leaves, first
            leaves += 1
            continue
        gain[best.feature] += whole - best.impurity
        feature[node], threshold[node], child[node] = best.feature, best.threshold, nodes
        _mark_right(columns, samples, rows[first:last], best, rules, right)
        if ordered:
            for k in range(lo[depth, side, best.feature], hi[depth, side, best.feature]):
                right[ids[k]] = listed[k] > best.threshold
        middle = partition(rows, spare, right, first, last)
        grows = False
        # The left child lies on top, so leaves and their rows are numbered from left to right.
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
                middle = _partition_listed(ids, listed, spare, spare_listed, right, begin, end)
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


@inlined
def search(
    columns: ForestColumns, ids: np.ndarray, listed: np.ndarray, lo: np.ndarray, hi: np.ndarray, live: np.ndarray,
    alive: int, packed: np.ndarray, node_rows: np.ndarray, counts: np.ndarray, table: np.ndarray, node: Node,
    rows: np.ndarray, mass: Mass, rules: GrowthRules, state: np.ndarray,
) -> tuple[Split, int]:  # fmt: skip
    """Return the best split of a node, and the number of features that its children search.

    The first ``alive`` features of ``live[0]`` are tried, and those for the children are written to ``live[1]``.
    Features that are constant in the node are dropped, and do not count as tried.
    """
    most = node.impurity - node.n * rules.min_gain
    # The adaptive step depends on the best gain so far, even if it is too small for a split.
    best = Split(np.int32(-1), np.float32(0), node.impurity if rules.search == ADAPTIVE else most, 0)
    keeps, tried, k = 0, 0, 0
    # Small nodes gain nothing from blocks.
    block = min(rules.block, max(1, node.count // 8))
    while k < alive and tried < rules.tries and min(best.impurity, most) > TIE * node.n:
        if rules.tries < alive:
            other = k + int(next_bits(state) % np.uint64(alive - k))
            live[0, k], live[0, other] = live[0, other], live[0, k]
        f = live[0, k]
        k += 1
        if rules.search == EXACT or rules.search == ADAPTIVE:
            begin, end, default = lo[f], hi[f], columns.default[f]
            constant = begin == end or (end - begin == node.count and listed[begin] == listed[end - 1])
            if not constant and rules.criterion == LOG_LOSS:
                best = ordered_feature(ids, listed, listed, packed, table, node, mass, f, begin, end, default, best)
            elif not constant and rules.search == EXACT:
                best = exact_feature(ids, listed, packed, table, node, f, begin, end, default, block, best)
            elif not constant:
                best = adaptive_feature(
                    ids, listed, packed, table, node, f, begin, end, default, rules.alpha, rules.beta, best
                )
        elif rules.search == HISTOGRAM:
            codes, low, high = columns.codes[f], columns.low[f], columns.high[f]
            if rules.criterion == LOG_LOSS:
                best, constant = binned_feature(codes, low, high, rows, packed, table, node, mass, f, best)
            else:
                best, constant = histogram_feature(codes, low, high, node_rows, counts, table, node, f, best)
        else:
            share, column = next_share(state), columns.values[f]
            if rules.criterion == LOG_LOSS:
                best, constant = drawn_feature(column, node_rows, rows, table, node, mass, f, share, best)
            else:
                best, constant = random_feature(column, node_rows, counts, table, node, f, share, best)
        if not constant:
            tried += 1
            live[1, keeps] = f
            keeps += 1
    if best.impurity >= most - TIE * node.n:
        best = Split(np.int32(-1), np.float32(0), most, best.evaluations)
    # Features that were not tried may still vary.
    left = alive - k
    live[1, keeps : keeps + left] = live[0, k:alive]
    return best, keeps + left


@inlined
def _mark_right(
    columns: ForestColumns, samples: np.ndarray, rows: np.ndarray, split: Split, rules: GrowthRules, right: np.ndarray
) -> None:
    """Mark in ``right`` which rows of a node go right; for an ordered search, whether the unlisted rows do."""
    f, cut = split.feature, split.threshold
    for row in rows:
        if rules.search == HISTOGRAM:
            right[row] = columns.low[f, columns.codes[f, samples[row]]] > cut
        elif rules.search == RANDOM:
            right[row] = columns.values[f, samples[row]] > cut
        else:
            right[row] = columns.default[f] > cut


@inlined
def _partition_listed(
    ids: np.ndarray, listed: np.ndarray, spare: np.ndarray, spare_listed: np.ndarray, right: np.ndarray, lo: int,
    hi: int,
) -> int:  # fmt: skip
    """Partition listed rows together with their values; see :func:`.numba_kernels.partition`."""
    position, moved = lo, 0
    for i in range(lo, hi):
        row, value = ids[i], listed[i]
        ids[position], listed[position] = row, value
        spare[moved], spare_listed[moved] = row, value
        goes = np.int64(right[row])
        position += 1 - goes
        moved += goes
    for i in range(moved):
        ids[position + i], listed[position + i] = spare[i], spare_listed[i]
    return position


@inlined
def _take_listed(
    columns: ForestColumns, samples: np.ndarray, lo: np.ndarray, hi: np.ndarray, ids: np.ndarray, listed: np.ndarray
) -> None:
    """Collect the listed rows of the tree in its own numbering; those of feature f are lo[f]..hi[f]."""
    number = np.full(samples[-1] + 1, -1, np.int32)
    for i in range(len(samples)):
        number[samples[i]] = i
    position = 0
    for f in range(len(lo)):
        lo[f] = position
        for k in range(columns.start[f], columns.start[f + 1]):
            row = columns.rows[k]
            # Written in any case and kept if drawn: a branch on chance is slower.
            ids[position] = number[row] if row < len(number) else -1
            listed[position] = columns.listed[k]
            position += ids[position] >= 0
        hi[f] = position
