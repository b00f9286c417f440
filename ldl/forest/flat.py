"""A forest as flat tensors: how trees are put together, shared between processes, and what their leaves hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.forest.compiled import compiled
from ldl.forest.grower import Tree


class FlatForest(NamedTuple):
    """K trees of M nodes and L leaves in all.

    Attributes:
        roots: (K,) int32, the first node of each tree.
        feature: (M,) int32, the feature that splits a node, -1 in a leaf.
        threshold: (M,) float32; rows whose value is at most this go left.
        child: (M,) int32, the left child, which the right one follows; in a leaf the row of ``values``.
        values: (L, C), what the leaves hold: distributions.
    """

    roots: Tensor
    feature: Tensor
    threshold: Tensor
    child: Tensor
    values: Tensor


def join_trees(trees: Sequence[Tree], target: np.ndarray, device: torch.device, collective: Collective) -> FlatForest:
    """The trees of all processes as one forest, with the mean distribution of each leaf.

    Args:
        trees: The trees that this process has grown, in order: process r has grown trees r, r + world size, ...
        target: (N, C) float32, the distributions of the training rows.
        device: Where the tensors are to lie; collectives may need them there.
        collective: Every process calls this.
    """
    sizes = np.array([[len(tree.feature), len(tree.start) - 1] for tree in trees], np.int64).reshape(-1, 2)
    own = {
        "feature": np.concatenate([np.empty(0, np.int32), *(tree.feature for tree in trees)]),
        "threshold": np.concatenate([np.empty(0, np.float32), *(tree.threshold for tree in trees)]),
        "child": np.concatenate([np.empty(0, np.int32), *(tree.child for tree in trees)]),
        "values": np.empty((sizes[:, 1].sum(), target.shape[1]), np.float32),
    }
    for tree, stop in zip(trees, sizes[:, 1].cumsum()):
        _leaf_means(tree.start, tree.rows, tree.weights, target, own["values"][stop - len(tree.start) + 1 : stop])
    counts = collective.gather(torch.from_numpy(sizes).to(device))
    joined = {}
    for name, array in own.items():
        parts = collective.gather(torch.from_numpy(array).to(device))
        lengths = [count[:, int(name == "values")].tolist() for count in counts]
        in_turn = _in_turn([part.split(length) for part, length in zip(parts, lengths)])
        joined[name] = parts[0] if len(parts) == 1 else torch.cat(in_turn)
    nodes_and_leaves = torch.stack(_in_turn([count.unbind() for count in counts]))
    before = (nodes_and_leaves.cumsum(0) - nodes_and_leaves).int()
    tree_of_node = torch.repeat_interleave(torch.arange(len(before), device=device), nodes_and_leaves[:, 0])
    child = joined["child"] + before[tree_of_node, (joined["feature"] < 0).long()]
    return FlatForest(before[:, 0].contiguous(), joined["feature"], joined["threshold"], child, joined["values"])


def _in_turn(shares: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Items dealt out to processes one by one, in their first order."""
    longest = max(len(share) for share in shares)
    return [share[turn] for turn in range(longest) for share in shares if turn < len(share)]


@compiled
def _leaf_means(
    start: np.ndarray, rows: np.ndarray, weights: np.ndarray, target: np.ndarray, means: np.ndarray
) -> None:
    """Fill in the mean distribution of each leaf, (L, C) float32; the rest as in :class:`ldl.forest.grower.Tree`."""
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
