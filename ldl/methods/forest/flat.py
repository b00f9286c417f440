"""The flat form of fitted trees, which forests, boosted trees and trees with random thresholds share.

The nodes of a tree are numbered from its root, 0; a right child follows its left sibling.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ldl.collective import Collective, interleave

T = TypeVar("T", bound=tuple[np.ndarray, ...])


class FlatTree(NamedTuple):
    """A fitted tree of M nodes and L leaves.

    Attributes:
        feature: (M,) int32, the feature of a split, -1 in a leaf.
        threshold: (M,) float32; rows with a value of at most this go left. Infinity sends only missing values right.
        child: (M,) int32, the left child; in a leaf its number, 0..L - 1.
        values: (L, C) float32, the values of the leaves: distributions, or steps of the scores.
        missing_left: (M,) bool, whether rows with a missing value go left; (0,) if no value may be missing.
        gain: (M,) float64, the gain of each split; (0,) if unknown.
    """

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    values: np.ndarray
    missing_left: np.ndarray = np.empty(0, np.bool_)
    gain: np.ndarray = np.empty(0)


class FlatForest(NamedTuple):
    """K trees of M nodes and L leaves in total.

    Attributes:
        roots: (K,) int32, the first node of each tree.
        feature: (M,) int32, see :class:`FlatTree`.
        threshold: (M,) float32.
        child: (M,) int32, the left child; in a leaf its row of ``values``.
        values: (L, C) float32, the values of the leaves. Boosting with one tree per label has (L, 1): tree k adds to
            the score of label k mod C.
        missing_left: (M,) bool, or None if no value may be missing.
    """

    roots: Tensor
    feature: Tensor
    threshold: Tensor
    child: Tensor
    values: Tensor
    missing_left: Tensor | None = None

    @classmethod
    def of(cls, head: nn.Module) -> FlatForest:
        """Return the forest in the buffers of a head, the inverse of :meth:`buffers`."""
        return cls(*(getattr(head, name, None) for name in cls._fields))

    def buffers(self) -> dict[str, Tensor]:
        """Return the tensors by name, for ``register_buffers``."""
        return {name: tensor for name, tensor in self._asdict().items() if tensor is not None}


def join_trees(
    trees: list[FlatTree], width: int, device: torch.device, collective: Collective, missing: bool = False
) -> FlatForest:
    """Join the trees of all processes into one forest.

    Args:
        trees: See :func:`join_arrays`.
        width: Width C of the leaf values, also for a forest without trees.
        device: See :func:`join_arrays`.
        collective: See :func:`join_arrays`.
        missing: Whether the trees have ``missing_left``.
    """
    whole, real = np.empty(0, np.int32), np.empty(0, np.float32)
    joined, lengths = join_arrays(trees, FlatTree(whole, real, whole, real.reshape(0, width)), device, collective)
    nodes, leaves = lengths[:, 0], lengths[:, 3]
    roots = number_across(joined[2], joined[0] >= 0, nodes, nodes, leaves)
    return FlatForest(roots, *joined[:4], joined[4] if missing else None)


def number_across(numbers: Tensor, inner: Tensor, nodes: Tensor, of_inner: Tensor, of_leaf: Tensor) -> Tensor:
    """Convert numbers within each of K trees to numbers across all trees, in place.

    Args:
        numbers: (M,) int32, a number for each node, such as its left child or its leaf.
        inner: (M,) bool, whether the node is split.
        nodes: (K,) nodes of each tree.
        of_inner: (K,) count of the items in each tree that the numbers of split nodes refer to.
        of_leaf: (K,) count of the items in each tree that the numbers of leaves refer to.

    Returns:
        The first number of a split node in each tree, (K,) int32: the roots, if ``of_inner`` are the nodes.
    """
    first_inner, first_leaf = ((counts.cumsum(0) - counts).int() for counts in (of_inner, of_leaf))
    sizes = nodes.tolist()
    # Tree by tree, because an offset for every node would take more memory than the forest.
    for of_tree, split, start, start_leaf in zip(numbers.split(sizes), inner.split(sizes), first_inner, first_leaf):
        of_tree += torch.where(split, start, start_leaf)
    return first_inner


def join_arrays(trees: list[T], like: T, device: torch.device, collective: Collective) -> tuple[list[Tensor], Tensor]:
    """Return the n arrays of a tree, each joined over the trees of all processes, and their lengths, (trees, n).

    Args:
        trees: The trees of this process, in order: process r grows the trees r, r + world size, ... The list is
            emptied, so that the trees are not held twice.
        like: A tree of empty arrays with the shapes and dtypes, for a process that has grown no tree.
        device: Device of the tensors. Collective operations may need them there.
        collective: Every process must call this.
    """
    sizes = np.array([[len(array) for array in tree] for tree in trees], np.int64).reshape(-1, len(like))
    counts = collective.gather(torch.from_numpy(sizes).to(device))
    shares = [list(column) for column in zip(*trees)] or [[] for _ in like]
    trees.clear()
    joined = []
    # The large arrays come last in a tree. They are joined first, so that no other array lies above them in memory and
    # keeps the allocator from returning it.
    for field in reversed(range(len(like))):
        arrays = collective.gather(torch.from_numpy(_concatenate(shares[field], like[field])).to(device))
        if len(arrays) > 1:
            split = [array.split(count[:, field].tolist()) for array, count in zip(arrays, counts)]
            longest = max(map(len, split))
            arrays = [torch.cat([share[number] for number in range(longest) for share in split if number < len(share)])]
        joined += arrays
    return joined[::-1], interleave(counts)


def _concatenate(arrays: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    """Concatenate the parts, and release each as soon as it is copied."""
    whole = np.empty((sum(map(len, arrays)), *like.shape[1:]), like.dtype)
    end = len(whole)
    while arrays:
        array = arrays.pop()
        whole[end - len(array) : end] = array
        end -= len(array)
    return whole
