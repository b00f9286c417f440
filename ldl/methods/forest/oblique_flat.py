"""A forest of oblique trees as flat tensors: put together, shared between processes, and read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.methods.forest.flat import join_arrays
from ldl.methods.forest.oblique import ObliqueTree
from ldl.methods.traced import pick, traced

PART = 2**22
"""Numbers that are held at a time."""


class ObliqueForest(NamedTuple):
    """T trees of M nodes, I splits and L leaves in all, whose arrays are those of :class:`.oblique.ObliqueTree`.

    ``roots`` (T,) int32 are the first nodes of the trees; children and splits are numbered through all trees.
    """

    roots: Tensor
    split: Tensor
    child: Tensor
    threshold: Tensor
    columns: Tensor
    weights: Tensor
    sizes: Tensor
    rows: Tensor
    draws: Tensor


def join_oblique(trees: list[ObliqueTree], width: int, device: torch.device, collective: Collective) -> ObliqueForest:
    """The trees of all processes as one forest, of D = ``width``; the rest as for :func:`.flat.join_arrays`."""
    whole, number = np.empty(0, np.int32), np.empty(0)
    like = ObliqueTree(whole, whole, number, whole.reshape(0, width), number.reshape(0, width), whole, whole, whole)
    joined, lengths = join_arrays(trees, like, device, collective)
    # What the trees before hold, under the names of the arrays.
    before = dict(zip(ObliqueTree._fields, (lengths.cumsum(0) - lengths).int().unbind(1)))
    nodes = lengths[:, 0].tolist()
    for tree, (split, child) in enumerate(zip(joined[0].split(nodes), joined[1].split(nodes))):
        child += torch.where(split < 0, before["sizes"][tree], before["split"][tree])
        split += torch.where(split < 0, 0, before["columns"][tree])
    return ObliqueForest(before["split"].contiguous(), *joined)


def reach(rows: Tensor, forest: ObliqueForest, depth: int) -> Tensor:
    """Numbers of the leaves that rows (B, F) reach after at most ``depth`` splits, one a tree: (B, T), int64."""
    if traced():
        return _follow(rows.to(forest.weights.dtype), forest, depth)
    found = torch.empty(len(rows), len(forest.roots), dtype=torch.int64, device=rows.device)
    step = max(1, PART // (len(forest.roots) * max(1, forest.columns.shape[1])))
    for start in range(0, len(rows), step):
        part = rows[start : start + step].to(forest.weights.dtype)
        node = forest.roots.long().expand(len(part), -1).clone()
        row, tree = (forest.split[node] >= 0).nonzero(as_tuple=True)
        while len(row):
            here = node[row, tree]
            split = forest.split[here].long()
            score = (part[row[:, None], forest.columns[split].long()] * forest.weights[split]).sum(1)
            here = forest.child[here].long() + (score >= forest.threshold[here])
            node[row, tree] = here
            going = forest.split[here] >= 0
            row, tree = row[going], tree[going]
        found[start : start + step] = forest.child[node].long()
    return found


def _follow(rows: Tensor, forest: ObliqueForest, depth: int) -> Tensor:
    """:func:`reach` by so many steps of all rows in all trees, for a graph."""
    node = forest.roots.long().expand(rows.shape[0], -1)
    for _ in range(depth):
        split = pick(forest.split, node).long()
        going, split = split >= 0, split.clamp_min(0)
        asked = rows.unsqueeze(1).expand(-1, split.shape[1], -1).gather(2, pick(forest.columns, split).long())
        right = (asked * pick(forest.weights, split)).sum(2) >= pick(forest.threshold, node)
        node = torch.where(going, pick(forest.child, node).long() + right.long(), node)
    return pick(forest.child, node).long()


def leaf_means(forest: ObliqueForest, columns: Tensor) -> Tensor:
    """Means (L, c) of training columns (N, c) over the draws of each leaf, in the columns' dtype."""
    leaf = torch.repeat_interleave(torch.arange(len(forest.sizes), device=columns.device), forest.sizes.long())
    draws = forest.draws.to(columns.dtype)[:, None]
    sums = columns.new_zeros(len(forest.sizes), columns.shape[1])
    sums.index_add_(0, leaf, draws * columns[forest.rows.long()])
    return sums / columns.new_zeros(len(forest.sizes), 1).index_add_(0, leaf, draws)
