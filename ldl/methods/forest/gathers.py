"""The leaves that rows reach, by gathers: so many equal steps of all rows in all trees, on any device and in graphs."""

from __future__ import annotations

import torch
from torch import Tensor


def follow(
    features: Tensor,
    roots: Tensor,
    feature: Tensor,
    threshold: Tensor,
    child: Tensor,
    depth: int,
    missing_left: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Where rows end in K trees of M nodes; the tensors of trees are those of :class:`.flat.FlatForest`.

    Args:
        features: (B, F) float32.
        roots: (K,).
        feature: (M,), -1 in a leaf.
        threshold: (M,).
        child: (M,), in a leaf the row of what it holds.
        depth: Splits on the longest path.
        missing_left: (M,) bool, whether rows go left whose value is NaN; None sends them left.

    Returns:
        Leaves (B, K), int64, and which rows were asked for a value that is NaN, (B,).
    """
    rows, trees = features.shape[0], roots.shape[0]
    # A leaf leads to itself, so that a step is the same for all.
    leaf = feature < 0
    asked = feature.clamp_min(0).long()
    limit = torch.where(leaf, torch.inf, threshold)
    left = torch.where(leaf, torch.arange(feature.shape[0], device=leaf.device), child.long())
    flat = features.reshape(-1)
    start = torch.arange(rows, device=flat.device).unsqueeze(1).expand(-1, trees).reshape(-1) * features.shape[1]
    node = roots.long().expand(rows, -1).reshape(-1)
    missing = torch.zeros_like(node, dtype=torch.bool)
    for _ in range(depth):
        value = flat.index_select(0, start + asked.index_select(0, node))
        unknown = value.isnan()
        right = value > limit.index_select(0, node)
        if missing_left is not None:
            right = right | (unknown & ~(missing_left | leaf).index_select(0, node))
        missing = missing | (unknown & ~leaf.index_select(0, node))
        node = left.index_select(0, node) + right.long()
    leaves = child.long().index_select(0, node)
    return leaves.unflatten(0, (rows, trees)), missing.unflatten(0, (rows, trees)).any(1)
