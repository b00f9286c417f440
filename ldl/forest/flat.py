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


def join_trees(
    trees: Sequence[Tree], values: Sequence[np.ndarray], width: int, device: torch.device, collective: Collective
) -> FlatForest:
    """The trees of all processes as one forest; process r has grown trees r, r + world size, ...

    Args:
        trees: The trees that this process has grown, in order; there may be none.
        values: (L, C) float32, what the leaves of each hold.
        width: C.
        device: Where the tensors are to lie; collectives may need them there.
        collective: Every process calls this.
    """

    def everyone(arrays: Sequence[np.ndarray], empty: np.ndarray) -> list[Tensor]:
        parts = collective.gather(torch.from_numpy(np.concatenate([empty, *arrays])).to(device))
        return parts

    sizes = [np.array([[len(tree.feature), len(tree.start) - 1]]) for tree in trees]
    counts = everyone(sizes, np.empty((0, 2), np.int64))
    columns = {
        "feature": everyone([tree.feature for tree in trees], np.empty(0, np.int32)),
        "threshold": everyone([tree.threshold for tree in trees], np.empty(0, np.float32)),
        "child": everyone([tree.child for tree in trees], np.empty(0, np.int32)),
        "values": everyone(values, np.empty((0, width), np.float32)),
    }
    joined = {
        name: torch.cat(_in_turn([part.split(count[:, int(name == "values")].tolist()) for part, count in zip(parts, counts)]))
        for name, parts in columns.items()
    }
    sizes_in_order = torch.stack(_in_turn([count.unbind() for count in counts]))
    before = (sizes_in_order.cumsum(0) - sizes_in_order).int()
    tree_of_node = torch.repeat_interleave(torch.arange(len(before), device=device), sizes_in_order[:, 0])
    shift = before[tree_of_node, (joined["feature"] < 0).long()]
    return FlatForest(
        before[:, 0].contiguous(), joined["feature"], joined["threshold"], joined["child"] + shift, joined["values"]
    )


def _in_turn(shares: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Items dealt out to processes one by one, in their first order."""
    longest = max(len(share) for share in shares)
    return [share[turn] for turn in range(longest) for share in shares if turn < len(share)]


@compiled
def leaf_means(start: np.ndarray, rows: np.ndarray, weights: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The mean distribution of each leaf (L, C) float32, of ``target`` (N, C); see :class:`ldl.forest.grower.Tree`."""
    width = target.shape[1]
    means = np.empty((len(start) - 1, width), np.float32)
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
    return means
