"""Flat forests: the numbers of nodes and leaves across the trees that are joined."""

from __future__ import annotations

import numpy as np
import torch

from ldl.collective import Collective
from ldl.methods.forest.flat import FlatTree, join_trees

CPU = torch.device("cpu")


def stump(values: list[list[float]]) -> FlatTree:
    feature, child = np.array([2, -1, -1], np.int32), np.array([1, 0, 1], np.int32)
    return FlatTree(feature, np.array([0.5, 0, 0], np.float32), child, np.array(values, np.float32))


def test_joined_trees_count_on_from_the_trees_before() -> None:
    leaf = FlatTree(
        np.array([-1], np.int32), np.zeros(1, np.float32), np.zeros(1, np.int32), np.ones((1, 1), np.float32)
    )
    trees = [stump([[1], [2]]), leaf, stump([[3], [4]])]
    forest = join_trees(trees, 1, CPU, Collective())
    assert trees == [] and forest.missing_left is None
    assert forest.roots.tolist() == [0, 3, 4]
    # A split names its left child among all nodes, a leaf its row of all values.
    assert forest.child.tolist() == [1, 0, 1, 2, 5, 3, 4]
    assert forest.values.flatten().tolist() == [1, 2, 1, 3, 4]


def test_a_forest_without_trees_has_values_of_its_width() -> None:
    forest = join_trees([], 4, CPU, Collective(), missing=True)
    assert forest.roots.shape == (0,) and forest.values.shape == (0, 4)
    assert forest.missing_left is not None and forest.missing_left.dtype == torch.bool
