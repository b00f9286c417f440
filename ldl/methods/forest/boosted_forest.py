"""Boosted trees as flat tensors, and the sums of the leaves that rows reach in them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.methods.forest.boosted_tree import BoostedTree
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.gathers import follow
from ldl.methods.traced import pick, traced

ROWS = 4096
"""Rows that go through all trees together, by gathers."""
CACHED = 1 << 17
"""Numbers of float32 that fit into a core's cache, with room for a tree."""
WORTH_A_THREAD = 20_000
"""Rows times trees below which starting threads costs more than it saves."""


class BoostedForest(NamedTuple):
    """K trees of M nodes and L leaves in all; a leaf holds a step of C scores, or of one.

    Attributes:
        roots: (K,) int32, the first node of each tree.
        feature: (M,) int32, the feature that splits a node, -1 in a leaf.
        threshold: (M,) float32; rows whose value is at most this go left.
        missing_left: (M,) bool, whether rows go left whose value is missing.
        child: (M,) int32, the left child, which the right one follows; in a leaf the row of ``values``.
        values: (L, C), added to the scores; or (L, 1), which tree k adds to score k mod C.
    """

    roots: Tensor
    feature: Tensor
    threshold: Tensor
    missing_left: Tensor
    child: Tensor
    values: Tensor


def join_boosted(trees: list[BoostedTree], width: int, device: torch.device) -> BoostedForest:
    """Trees in order as one forest; leaves are ``width`` wide, also where there is no tree."""
    nodes = np.cumsum([0, *(len(tree.feature) for tree in trees)])
    leaves = np.cumsum([0, *(len(tree.values) for tree in trees)])
    child = [
        tree.child + np.where(tree.feature < 0, leaf, node).astype(np.int32)
        for tree, node, leaf in zip(trees, nodes, leaves)
    ]

    def joined(parts: list[np.ndarray], like: np.ndarray) -> Tensor:
        return torch.from_numpy(np.concatenate([like, *parts])).to(device)

    whole, real = np.empty(0, np.int32), np.empty(0, np.float32)
    return BoostedForest(
        torch.from_numpy(nodes[:-1].astype(np.int32)).to(device),
        joined([tree.feature for tree in trees], whole),
        joined([tree.threshold for tree in trees], real),
        joined([tree.missing_left for tree in trees], np.empty(0, np.bool_)),
        joined(child, whole),
        joined([tree.values for tree in trees], np.empty((0, width), np.float32)),
    )


def add_scores(features: Tensor, forest: BoostedForest, scores: Tensor, depth: int, threads: int = 1) -> None:
    """Add the leaves that rows (B, F) float32 reach, tree by tree, to ``scores`` (B, C) float32, in place.

    ``threads`` of a CPU share the rows; other devices take at most ``depth`` steps by gathers, and get the same leaves.
    """
    if traced():
        scores += sum_of_leaves(features, forest, scores.shape[1], depth)
        return
    if features.device.type != "cpu":
        for rows, out in zip(features.split(ROWS), scores.split(ROWS)):
            add_by_gathers(rows, forest, out, depth)
        return
    arrays = [tensor.detach().float().numpy() if tensor.is_floating_point() else tensor.numpy() for tensor in forest]
    rows, out = features.detach().contiguous().numpy(), scores.numpy()
    threads = max(1, min(threads, len(rows) * len(forest.roots) // WORTH_A_THREAD))
    if threads == 1:
        add_leaves(rows, *arrays, out)
        return
    cuts = np.linspace(0, len(rows), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda start, stop: add_leaves(rows[start:stop], *arrays, out[start:stop]), cuts, cuts[1:]))


def add_by_gathers(features: Tensor, forest: BoostedForest, scores: Tensor, depth: int) -> None:
    """:func:`add_scores` with torch alone."""
    if not len(forest.roots):
        return
    labels = scores.shape[1]
    for number, leaves in enumerate(_leaves(features, forest, depth).unbind(1)):
        step = forest.values.index_select(0, leaves).float()
        if step.shape[1] == labels:
            scores += step
        else:
            scores[:, number % labels] += step[:, 0]


def sum_of_leaves(features: Tensor, forest: BoostedForest, labels: int, depth: int) -> Tensor:
    """What :func:`add_scores` adds, (B, ``labels``), in few operations for a graph, all trees at once."""
    if not len(forest.roots):
        return features.new_zeros(features.shape[0], labels)
    steps = pick(forest.values, _leaves(features, forest, depth)).float()
    return (steps if steps.shape[2] == labels else steps.reshape(features.shape[0], -1, labels)).sum(1)


def _leaves(features: Tensor, forest: BoostedForest, depth: int) -> Tensor:
    """Leaves (B, K) that rows reach, by gathers."""
    trees = forest.roots, forest.feature, forest.threshold, forest.child
    return follow(features, *trees, depth, forest.missing_left)[0]


@compiled
def add_leaves(
    rows: np.ndarray,
    roots: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    missing_left: np.ndarray,
    child: np.ndarray,
    values: np.ndarray,
    scores: np.ndarray,
) -> None:
    """:func:`add_scores` on arrays, by one thread; rows (B, F) and scores (B, C) float32."""
    labels = scores.shape[1]
    # So many rows that they stay in the cache while they go through all trees.
    block = max(16, CACHED // (rows.shape[1] + 2 * labels))
    for first in range(0, len(rows), block):
        for k in range(len(roots)):
            for i in range(first, min(first + block, len(rows))):
                at = roots[k]
                while feature[at] >= 0:
                    value = rows[i, feature[at]]
                    left = missing_left[at] if value != value else value <= threshold[at]
                    at = child[at] + (0 if left else 1)
                leaf = child[at]
                if values.shape[1] == labels:
                    for c in range(labels):
                        scores[i, c] += values[leaf, c]
                else:
                    scores[i, k % labels] += values[leaf, 0]
