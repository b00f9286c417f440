"""A forest of oblique trees as flat tensors: put together, shared between processes, and read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.methods.forest.flat import in_turn
from ldl.methods.forest.oblique import ObliqueTree

PART = 2**22
"""Numbers that are held at a time."""


class ObliqueForest(NamedTuple):
    """T trees of M nodes, I splits and L leaves in all.

    Attributes:
        roots: (T,) int32, the first node of each tree.
        split: (M,) int32, row of ``columns`` and ``weights``, -1 in a leaf.
        child: (M,) int32, the left child, which the right one follows; in a leaf its number, 0..L - 1.
        threshold: (M,) float64; rows whose score is below it go left.
        columns: (I, D) int32, the features of each split.
        weights: (I, D) float64.
        sizes: (L,) int32, how many distinct training rows each leaf has.
        rows: Training rows, by leaf, int32.
        draws: How often the bootstrap drew each of ``rows``, int32.
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
    """The trees of all processes as one forest.

    Args:
        trees: Those that this process has grown, in order: process r has grown trees r, r + world size, ...
        width: D, also where this process has grown none.
        device: Where the tensors are to lie; collectives may need them there.
        collective: Every process calls this.
    """
    empty = ObliqueTree(
        *(np.empty(0, kind) for kind in (np.int32, np.int32, np.float64)),
        np.empty((0, width), np.int32), np.empty((0, width)), *(np.empty(0, np.int32) for _ in range(3)),
    )  # fmt: skip
    lengths = np.array([[len(part) for part in tree] for tree in trees], np.int64).reshape(-1, len(empty))
    counts = collective.gather(torch.from_numpy(lengths).to(device))
    joined: dict[str, list[Tensor]] = {}
    for place, name in enumerate(ObliqueTree._fields):
        mine = np.concatenate([tree[place] for tree in trees] + [empty[place]])
        parts = collective.gather(torch.from_numpy(mine).to(device))
        joined[name] = in_turn([part.split(count[:, place].tolist()) for part, count in zip(parts, counts)])
    node, leaf, split = 0, 0, 0
    roots = []
    for place, (inner, child) in enumerate(zip(joined["split"], joined["child"])):
        roots.append(node)
        joined["child"][place] = child + torch.where(inner < 0, leaf, node)
        joined["split"][place] = torch.where(inner < 0, inner, inner + split)
        node, leaf, split = (
            start + len(joined[name][place]) for start, name in ((node, "split"), (leaf, "sizes"), (split, "columns"))
        )
    whole = {name: torch.cat(parts) for name, parts in joined.items()}
    return ObliqueForest(torch.tensor(roots, dtype=torch.int32, device=device), **whole)


def reach(rows: Tensor, forest: ObliqueForest) -> Tensor:
    """Numbers of the leaves that rows (B, F) reach, one a tree: (B, T), int64."""
    found = torch.empty(len(rows), len(forest.roots), dtype=torch.int64, device=rows.device)
    step = max(1, PART // (len(forest.roots) * max(1, forest.columns.shape[1])))
    for start in range(0, len(rows), step):
        part = rows[start : start + step].to(forest.weights.dtype)
        node = forest.roots.long().expand(len(part), -1).clone()
        row, tree = (forest.split[node] >= 0).nonzero(as_tuple=True)
        while len(row):
            here = node[row, tree]
            split = forest.split[here].long()
            score = (part[row].gather(1, forest.columns[split].long()) * forest.weights[split]).sum(1)
            here = forest.child[here].long() + (score >= forest.threshold[here])
            node[row, tree] = here
            going = forest.split[here] >= 0
            row, tree = row[going], tree[going]
        found[start : start + step] = forest.child[node].long()
    return found


def leaf_means(forest: ObliqueForest, columns: Tensor) -> Tensor:
    """Means (L, c) of training columns (N, c) over the draws of each leaf, in the columns' dtype."""
    leaf = torch.repeat_interleave(torch.arange(len(forest.sizes), device=columns.device), forest.sizes.long())
    draws = forest.draws.to(columns.dtype)[:, None]
    sums = columns.new_zeros(len(forest.sizes), columns.shape[1])
    sums.index_add_(0, leaf, draws * columns[forest.rows.long()])
    return sums / columns.new_zeros(len(forest.sizes), 1).index_add_(0, leaf, draws)
