"""The forest as flat arrays: numbers of nodes and leaves across trees, and buffers that are no forest."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes.edge_images import random_forest
from torch import nn

from ldl.edges.structured.forest import check_forest, forest_of, unlearned_forest
from ldl.errors import LDLError


def holder(arrays: dict[str, np.ndarray]) -> nn.Module:
    """A module with these buffers."""
    module = nn.Module()
    for name, array in arrays.items():
        module.register_buffer(name, torch.from_numpy(array))
    return module


def test_trees_are_numbered_one_after_another() -> None:
    forest = random_forest(trees=3, depth=2, terms=2)
    assert forest.roots.tolist() == [0, 7, 14] and forest.feature.shape == (21, 2) and len(forest.segments) == 12
    inner = forest.feature[:, 0] >= 0
    np.testing.assert_array_equal(forest.child[inner], [1, 3, 5, 8, 10, 12, 15, 17, 19])
    np.testing.assert_array_equal(forest.child[~inner], np.arange(12))


@pytest.mark.parametrize("components", [0, 3])
def test_arrays_make_the_forest_again(components: int) -> None:
    forest = unlearned_forest(components)
    again = forest_of(forest.arrays())
    assert forest.segments.max() == 0 and (forest.kept is None) == (components == 0)
    for name, array in forest.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    check_forest(holder(forest.arrays()), components)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("segments", 2, "row 0 leaves out a number"),
        ("feature", 10**6, "feature"),
        ("child", 99, "child"),
        ("kept_start", 5, "kept_start"),
    ],
)
def test_buffers_that_are_no_forest_are_named(name: str, value: int, message: str) -> None:
    arrays = unlearned_forest(3).arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].flat[-1] = value
    with pytest.raises(LDLError, match=message):
        check_forest(holder(arrays), 3)
