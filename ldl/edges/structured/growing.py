"""Grows one tree over binned patches whose labels are segmentations (Dollar & Zitnick 2015, Sec. 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.bins import Bins
from ldl.edges.structured.clusters import many_classes
from ldl.edges.structured.gini import best_split, best_split_of_many
from ldl.edges.structured.hyperplane import add_up, best_hyperplane, gain_of_cut
from ldl.edges.structured.relabel import PAIRS, SAMPLE, draw_pairs, middle_segments, two_classes
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.draws import next_bits
from ldl.methods.forest.parting import partition


class Rules(NamedTuple):
    """How a tree grows.

    Attributes:
        tries: Features that a node tries.
        depth: Splits on the longest path.
        min_leaf: Patches that each side of a split must keep.
        sets: Hyperplanes that a node tries as well.
        terms: Features of each.
        shrinkage: See :func:`ldl.edges.structured.hyperplane.squared_hinge`.
        classes: Classes into which a node's segmentations fall; two by sign, more by k-means.
        balance: Classes of more than two weigh their count to the power of minus this, 0..1.
        early: A node whose best split leaves a side too few patches becomes a leaf.
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
        weight: (M, D) float32, their weights; 1 where D is 1.
        threshold: (M,) float32; patches whose sum is at most this go left.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        middle: (L,) int32, the training patch whose segmentation the leaf answers.
        start: (L + 1,) int32; the patches of leaf l are ``rows[start[l]:start[l + 1]]``.
        rows: (N,) int32, the training patches by leaf.
    """

    feature: np.ndarray
    weight: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    middle: np.ndarray
    start: np.ndarray
    rows: np.ndarray


@compiled
def grow(
    codes: np.ndarray, maps: np.ndarray, bins: Bins, segments: np.ndarray, rules: Rules, state: np.ndarray
) -> PatchTree:
    """Grow one tree on binned features, ``codes`` (F, N) uint8, of segmentations (N, S) uint8.

    ``maps`` (F,) says which of the bins' tables each feature has; random numbers come from ``state`` (1,) uint64.
    """
    width, size = codes.shape
    rows, spare = np.arange(size).astype(np.int32), np.empty(size, np.int32)
    right, labels = np.zeros(size, np.uint8), np.empty(size, np.uint8)
    pairs = np.empty((PAIRS, 2), np.int32)
    scratch = np.empty((min(size, SAMPLE), PAIRS), np.float32)
    order = np.arange(width)
    terms = min(rules.terms, width) if rules.sets else 1
    most = 2 * (size // max(rules.min_leaf, 1)) + 1
    feature, weight = np.full((most, terms), -1, np.int32), np.ones((most, terms), np.float32)
    threshold, child = np.zeros(most, np.float32), np.zeros(most, np.int32)
    middle, start = np.empty(most, np.int32), np.empty(most + 1, np.int32)
    sums = np.empty(size, np.float32)
    counts, costs = np.zeros(rules.classes, np.int64), np.ones(rules.classes)
    # Node, first row, one past the last, depth.
    stack = np.empty((rules.depth + 2, 4), np.int64)
    stack[0] = 0, 0, size, 0
    waiting, nodes, leaves = 1, 1, 0
    while waiting:
        waiting -= 1
        node, first, last, level = stack[waiting]
        own = rows[first:last]
        draw_pairs(segments.shape[1], state, pairs)
        found = False
        if level < rules.depth and last - first >= 2 * rules.min_leaf:
            least_side = 1 if rules.early else rules.min_leaf
            ones = 0
            if rules.classes == 2 and rules.balance == 0:
                ones = two_classes(segments, own, pairs, scratch, state, labels)
                f, cut = best_split(codes, own, labels, ones, rules.tries, least_side, order, state)
            else:
                many_classes(segments, own, pairs, scratch, state, labels, counts)
                for k in range(rules.classes):
                    costs[k] = max(counts[k], 1) ** -rules.balance
                f, cut = best_split_of_many(codes, own, labels, costs, rules.tries, least_side, order, state)
                # Hyperplanes part one class, drawn at random, from the rest.
                chosen = np.int64(next_bits(state) % np.uint64(rules.classes)) if rules.sets else np.int64(0)
                for i in range(last - first):
                    labels[i] = labels[i] == chosen
                ones = counts[chosen]
            found = f >= 0
            if found and rules.early:
                goes = 0
                for row in own:
                    goes += codes[f, row] <= cut
                found = rules.min_leaf <= goes <= last - first - rules.min_leaf
            if found:
                feature[node, :], weight[node, 0], weight[node, 1:] = f, 1, 0
                threshold[node] = bins.edges[maps[f], cut]
            if rules.sets and 0 < ones < last - first:
                least = gain_of_cut(codes[f], cut, own, labels, ones) if found else 0.0
                better, cut_off = best_hyperplane(
                    codes, maps, bins.top, own, labels, ones, rules.sets, rules.min_leaf, rules.shrinkage, least,
                    order, state, feature[node], weight[node],
                )  # fmt: skip
                if better:
                    found, threshold[node] = True, cut_off
        if not found:
            child[node], start[leaves] = leaves, first
            middle[leaves] = middle_segments(segments, own, pairs)
            leaves += 1
            continue
        child[node] = nodes
        add_up(codes, maps, bins.top, own, feature[node], weight[node], sums)
        for i in range(len(own)):
            right[own[i]] = sums[i] > threshold[node]
        border = partition(rows, spare, right, first, last)
        # The left child lies on top, so leaves are numbered from left to right, as their rows are.
        stack[waiting] = nodes + 1, border, last, level + 1
        stack[waiting + 1] = nodes, first, border, level + 1
        waiting += 2
        nodes += 2
    start[leaves] = size
    return PatchTree(
        feature[:nodes].copy(), weight[:nodes].copy(), threshold[:nodes].copy(), child[:nodes].copy(),
        middle[:leaves].copy(), start[: leaves + 1].copy(), rows,
    )  # fmt: skip
