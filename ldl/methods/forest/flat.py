"""A forest as flat tensors: how trees are put together, shared between processes, and what their leaves hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective, interleave
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.grower import Tree

T = TypeVar("T", bound=tuple[np.ndarray, ...])


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


class PlantedTree(NamedTuple):
    """One tree with what its leaves hold; the rest as in :class:`.grower.Tree`.

    Attributes:
        values: (L, C) float32, the mean distribution of each leaf.
    """

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    values: np.ndarray


def plant(tree: Tree, target: np.ndarray) -> PlantedTree:
    """The tree with the means of ``target`` (N, C) float32 in its leaves; its lists of rows can then be forgotten."""
    values = np.empty((len(tree.start) - 1, target.shape[1]), np.float32)
    _leaf_means(tree.start, tree.rows, tree.weights, target, values)
    return PlantedTree(tree.feature, tree.threshold, tree.child, values)


def join_trees(trees: list[PlantedTree], labels: int, device: torch.device, collective: Collective) -> FlatForest:
    """The trees of all processes as one forest, of C ``labels``; the rest as for :func:`join_arrays`."""
    nothing = np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.int32), np.empty((0, labels), np.float32)
    joined, lengths = join_arrays(trees, PlantedTree(*nothing), device, collective)
    before = (lengths.cumsum(0) - lengths).int()
    # Tree by tree, because a number of its own for every node would take more memory than the forest.
    nodes = lengths[:, 0].tolist()
    for feature, child, offset in zip(joined[0].split(nodes), joined[2].split(nodes), before):
        child += torch.where(feature < 0, offset[3], offset[0])
    return FlatForest(before[:, 0].contiguous(), *joined)


def join_arrays(trees: list[T], like: T, device: torch.device, collective: Collective) -> tuple[list[Tensor], Tensor]:
    """The n arrays of a tree, each joined over the trees of all processes, and their lengths, (trees, n).

    Args:
        trees: The trees that this process has grown, in order: process r has grown trees r, r + world size, ...
            The list is emptied, so that they are not held twice.
        like: A tree of empty arrays, of the right shapes and dtypes also where this process has grown none.
        device: Where the tensors are to lie; collectives may need them there.
        collective: Every process calls this.
    """
    sizes = np.array([[len(part) for part in tree] for tree in trees], np.int64).reshape(-1, len(like))
    counts = collective.gather(torch.from_numpy(sizes).to(device))
    shares = [list(column) for column in zip(*trees)] or [[] for _ in like]
    trees.clear()
    joined = []
    # A forest's values first: what is made before them would lie above them in memory and keep it from being returned.
    for place in reversed(range(len(like))):
        parts = collective.gather(torch.from_numpy(_concatenate(shares[place], like[place])).to(device))
        if len(parts) > 1:
            split = [part.split(count[:, place].tolist()) for part, count in zip(parts, counts)]
            parts = [torch.cat(in_turn(split))]
        joined += parts
    return joined[::-1], interleave(counts)


def _concatenate(parts: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    """The parts one after the other; each is forgotten as soon as it is copied."""
    whole = np.empty((sum(map(len, parts)), *like.shape[1:]), like.dtype)
    end = len(whole)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def in_turn(shares: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Items dealt out to processes one by one, in their first order."""
    longest = max(len(share) for share in shares)
    return [share[turn] for turn in range(longest) for share in shares if turn < len(share)]


@compiled
def _leaf_means(
    start: np.ndarray, rows: np.ndarray, weights: np.ndarray, target: np.ndarray, means: np.ndarray
) -> None:
    """Fill in the mean distribution of each leaf, (L, C) float32; the rest as in :class:`.grower.Tree`."""
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
