"""Growing one tree over segmentations (Dollar & Zitnick 2015, Sec. 3.2).

At each node, segmentations of 16 x 16 pixels become codes of 0 and 1: whether the two pixels of each of 256 random
pairs lie in the same segment. The sign of the first principal component of the codes gives two classes, k-means of at
most 5 principal components gives more. The split then separates the classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.patches import PatchBins
from ldl.edges.structured.splits import add_up, best_hyperplane, best_split, best_split_of_many, gain_of_cut
from ldl.methods.numba_kernels import add_row, compiled, dot, inlined, next_bits, partition

PAIRS = 256
COMPONENT_SAMPLE = 1024
"""Segmentations from which a node computes principal components; larger nodes draw them at random."""
POWER_ROUNDS = 12
"""Steps of the power iteration."""
COMPONENTS = 5
KMEANS_ROUNDS = 3
"""Rounds of k-means."""


class GrowthOptions(NamedTuple):
    """Options of the growth of a tree.

    Attributes:
        tries: Features that a node tries.
        depth: Splits on the longest path.
        min_leaf: Minimum number of patches on each side of a split.
        sets: Hyperplanes that a node tries in addition.
        terms: Features of each hyperplane.
        shrinkage: See :func:`.splits.squared_hinge`.
        classes: Classes of a node's segmentations: two by sign, more by k-means.
        balance: Classes of more than two weigh their count to the power of minus this, 0..1.
        early: Make a leaf of a node whose best split leaves one side too few patches.
    """

    tries: int
    depth: int
    min_leaf: int
    sets: int
    terms: int
    shrinkage: float
    classes: int = 2
    balance: float = 0.0
    early: bool = False


class PatchTree(NamedTuple):
    """One tree of M nodes and L leaves. The root is node 0; a right child follows its left sibling.

    Attributes:
        feature: (M, D) int32, the features that a node adds up, in the tree's own numbering; -1 in a leaf.
        weight: (M, D) float32, their weights; 1 if D is 1.
        threshold: (M,) float32; patches whose sum is at most this go left.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        medoid: (L,) int32, the training patch whose segmentation the leaf predicts.
        start: (L + 1,) int32; the patches of leaf l are ``rows[start[l]:start[l + 1]]``.
        rows: (N,) int32, the training patches by leaf.
    """

    feature: np.ndarray
    weight: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    medoid: np.ndarray
    start: np.ndarray
    rows: np.ndarray


@compiled
def grow(
    codes: np.ndarray, maps: np.ndarray, bins: PatchBins, segments: np.ndarray, options: GrowthOptions,
    state: np.ndarray,
) -> PatchTree:  # fmt: skip
    """Grow one tree on binned features, ``codes`` (F, N) uint8, of segmentations (N, S) uint8.

    ``maps`` (F,) is the table of bins of each feature; random numbers come from ``state`` (1,) uint64.
    """
    width, size = codes.shape
    rows, spare = np.arange(size).astype(np.int32), np.empty(size, np.int32)
    right, labels = np.zeros(size, np.uint8), np.empty(size, np.uint8)
    pairs = np.empty((PAIRS, 2), np.int32)
    scratch = np.empty((min(size, COMPONENT_SAMPLE), PAIRS), np.float32)
    order = np.arange(width)
    terms = min(options.terms, width) if options.sets else 1
    most = 2 * (size // max(options.min_leaf, 1)) + 1
    feature, weight = np.full((most, terms), -1, np.int32), np.ones((most, terms), np.float32)
    threshold, child = np.zeros(most, np.float32), np.zeros(most, np.int32)
    medoid, start = np.empty(most, np.int32), np.empty(most + 1, np.int32)
    sums = np.empty(size, np.float32)
    counts, costs = np.zeros(options.classes, np.int64), np.ones(options.classes)
    # Node, first row, one past the last, depth.
    stack = np.empty((options.depth + 2, 4), np.int64)
    stack[0] = 0, 0, size, 0
    waiting, nodes, leaves = 1, 1, 0
    while waiting:
        waiting -= 1
        node, first, last, level = stack[waiting]
        members = rows[first:last]
        draw_pairs(segments.shape[1], state, pairs)
        is_split = False
        if level < options.depth and last - first >= 2 * options.min_leaf:
            least_side = 1 if options.early else options.min_leaf
            ones = 0
            if options.classes == 2 and options.balance == 0:
                ones = two_classes(segments, members, pairs, scratch, state, labels)
                f, cut = best_split(codes, members, labels, ones, options.tries, least_side, order, state)
            else:
                many_classes(segments, members, pairs, scratch, state, labels, counts)
                for k in range(options.classes):
                    costs[k] = max(counts[k], 1) ** -options.balance
                f, cut = best_split_of_many(codes, members, labels, costs, options.tries, least_side, order, state)
                # Hyperplanes separate one random class from the others.
                chosen = np.int64(next_bits(state) % np.uint64(options.classes)) if options.sets else np.int64(0)
                for i in range(last - first):
                    labels[i] = labels[i] == chosen
                ones = counts[chosen]
            is_split = f >= 0
            if is_split and options.early:
                goes = 0
                for row in members:
                    goes += codes[f, row] <= cut
                is_split = options.min_leaf <= goes <= last - first - options.min_leaf
            if is_split:
                feature[node, :], weight[node, 0], weight[node, 1:] = f, 1, 0
                threshold[node] = bins.edges[maps[f], cut]
            if options.sets and 0 < ones < last - first:
                least = gain_of_cut(codes[f], cut, members, labels, ones) if is_split else 0.0
                better, cut_off = best_hyperplane(
                    codes, maps, bins.top, members, labels, ones, options.sets, options.min_leaf, options.shrinkage,
                    least, order, state, feature[node], weight[node],
                )  # fmt: skip
                if better:
                    is_split, threshold[node] = True, cut_off
        if not is_split:
            child[node], start[leaves] = leaves, first
            medoid[leaves] = medoid_row(segments, members, pairs)
            leaves += 1
            continue
        child[node] = nodes
        add_up(codes, maps, bins.top, members, feature[node], weight[node], sums)
        for i in range(len(members)):
            right[members[i]] = sums[i] > threshold[node]
        border = partition(rows, spare, right, first, last)
        # The left child lies on top, so leaves are numbered from left to right, as their rows are.
        stack[waiting] = nodes + 1, border, last, level + 1
        stack[waiting + 1] = nodes, first, border, level + 1
        waiting += 2
        nodes += 2
    start[leaves] = size
    return PatchTree(
        feature[:nodes].copy(), weight[:nodes].copy(), threshold[:nodes].copy(), child[:nodes].copy(),
        medoid[:leaves].copy(), start[: leaves + 1].copy(), rows,
    )  # fmt: skip


@inlined
def draw_pairs(pixels: int, state: np.ndarray, pairs: np.ndarray) -> None:
    """Fill ``pairs`` (P, 2) int32 with random pairs of different pixels out of ``pixels``."""
    for p in range(len(pairs)):
        one = int(next_bits(state) % np.uint64(pixels))
        two = int(next_bits(state) % np.uint64(pixels - 1))
        pairs[p, 0], pairs[p, 1] = one, two + (two >= one)


@compiled
def two_classes(
    segments: np.ndarray, rows: np.ndarray, pairs: np.ndarray, codes: np.ndarray, state: np.ndarray, labels: np.ndarray
) -> int:
    """Split segmentations into two classes by the sign of their first principal component.

    The classes of ``rows`` (n,) of ``segments`` (N, S) uint8 are written into ``labels`` (at least n,) uint8. Pixels
    are compared by ``pairs`` (P, 2); ``codes`` (at least min(n, 1024), P) float32 are scratch. Returns the size of
    class 1: 0 if all codes are equal, else, up to rounding, neither 0 nor n.
    """
    count, width = len(rows), len(pairs)
    size = min(count, COMPONENT_SAMPLE)
    mean = np.zeros(width, np.float32)
    for i in range(size):
        row = rows[i] if count == size else rows[int(next_bits(state) % np.uint64(count))]
        for p in range(width):
            same = np.float32(segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]])
            codes[i, p] = same
            mean[p] += same
    longest, start = np.float32(0), 0
    for p in range(width):
        mean[p] /= size
    for i in range(size):
        for p in range(width):
            codes[i, p] -= mean[p]
        length = dot(codes[i], codes[i])
        if length > longest:
            longest, start = length, i
    if longest == 0:
        return 0
    # Start from the code farthest from the mean, which is never orthogonal to all of the variance.
    direction = codes[start].copy()
    following = np.empty(width, np.float32)
    for _ in range(POWER_ROUNDS):
        following[:] = 0
        for i in range(size):
            add_row(following, codes[i], dot(codes[i], direction))
        scale = np.float32(1 / np.sqrt(dot(following, following)))
        for p in range(width):
            direction[p] = following[p] * scale
    offset = dot(mean, direction)
    ones = 0
    for i in range(count):
        score = np.float32(0)
        for p in range(width):
            if segments[rows[i], pairs[p, 0]] == segments[rows[i], pairs[p, 1]]:
                score += direction[p]
        labels[i] = score > offset
        ones += labels[i]
    return ones


@compiled
def medoid_row(segments: np.ndarray, rows: np.ndarray, pairs: np.ndarray) -> int:
    """Return the row of a node whose code is nearest to the mean code, the first one of equals."""
    count, width = len(rows), len(pairs)
    mean = np.zeros(width)
    for row in rows:
        for p in range(width):
            mean[p] += segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]]
    least, middle = np.inf, rows[0]
    for row in rows:
        away = 0.0
        for p in range(width):
            same = segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]]
            away += (same - mean[p] / count) ** 2
        if away < least:
            least, middle = away, row
    return middle


@compiled
def many_classes(
    segments: np.ndarray, rows: np.ndarray, pairs: np.ndarray, codes: np.ndarray, state: np.ndarray,
    labels: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Fill the class 0..K - 1 of each segmentation of a node and ``counts`` (K,) int64; classes may be empty.

    K-means starts from the signs of the leading principal components. The other arguments are those of
    :func:`two_classes`.
    """
    count, width, classes = len(rows), len(pairs), len(counts)
    size = min(count, COMPONENT_SAMPLE)
    mean = np.zeros(width, np.float32)
    for i in range(size):
        row = rows[i] if count == size else rows[int(next_bits(state) % np.uint64(count))]
        for p in range(width):
            codes[i, p] = segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]]
        add_row(mean, codes[i], np.float32(1 / size))
    for i in range(size):
        add_row(codes[i], mean, np.float32(-1))
    axes = _principal_axes(codes[:size], COMPONENTS)
    places = np.empty((count, len(axes)), np.float32)
    code = np.empty(width, np.float32)
    bits = 0
    while 2 << bits <= classes and bits < len(axes):
        bits += 1
    for i in range(count):
        for p in range(width):
            code[p] = (segments[rows[i], pairs[p, 0]] == segments[rows[i], pairs[p, 1]]) - mean[p]
        labels[i] = 0
        for a in range(len(axes)):
            places[i, a] = dot(axes[a], code)
            if a < bits:
                labels[i] |= (places[i, a] > 0) << a
    # If the number of classes is no power of two, the other classes start from random rows.
    for k in range(1 << bits, classes):
        labels[int(next_bits(state) % np.uint64(count))] = k
    _k_means(places, labels, counts)


@compiled
def _principal_axes(centred: np.ndarray, most: int) -> np.ndarray:
    """Return at most ``most`` principal axes (A, P) of centred rows (n, P) float32, which are removed from the rows."""
    axes = np.zeros((most, centred.shape[1]), np.float32)
    for a in range(most):
        longest, start = np.float32(1e-6), -1
        for i in range(len(centred)):
            length = dot(centred[i], centred[i])
            if length > longest:
                longest, start = length, i
        if start < 0:
            return axes[:a]
        axes[a] = centred[start]
        following = np.empty_like(axes[a])
        for _ in range(POWER_ROUNDS):
            following[:] = 0
            for i in range(len(centred)):
                add_row(following, centred[i], dot(centred[i], axes[a]))
            axes[a] = following / np.sqrt(dot(following, following))
        for i in range(len(centred)):
            add_row(centred[i], axes[a], -dot(centred[i], axes[a]))
    return axes


@compiled
def _k_means(places: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> None:
    """Run k-means from the clusters in ``labels`` (n,) and fill their sizes ``counts`` (K,)."""
    classes, size = len(counts), places.shape[1]
    centres = np.empty((classes, size), np.float32)
    for step in range(KMEANS_ROUNDS + 1):
        counts[:] = 0
        centres[:] = 0
        for i in range(len(places)):
            counts[labels[i]] += 1
            for a in range(size):
                centres[labels[i], a] += places[i, a]
        if step == KMEANS_ROUNDS:
            break
        for k in range(classes):
            for a in range(size):
                centres[k, a] /= max(counts[k], 1)
        for i in range(len(places)):
            least = np.float32(np.inf)
            for k in range(classes):
                if counts[k] == 0:
                    continue
                away = np.float32(0)
                for a in range(size):
                    away += (places[i, a] - centres[k, a]) ** 2
                if away < least:
                    least, labels[i] = away, k
