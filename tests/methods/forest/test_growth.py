"""The loop that grows a tree, where it returns to its caller."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes.boosting_reference import problem

from ldl.collective import Collective
from ldl.methods.forest.binning import make_bins
from ldl.methods.forest.boosted_tree import Grower, Shape
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.histograms import Newton


def grow(threads: int, leaves: int | None, random: bool) -> FlatTree:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(300, 5)).astype(np.float32)
    rows[generator.random(rows.shape) < 0.1] = np.nan
    derivatives = np.concatenate([generator.normal(size=(300, 3)), np.ones((300, 3))], 1).astype(np.float32)
    grower = Grower(make_bins(rows), threads, Collective(), torch.device("cpu"))
    shape = Shape(12, leaves, 0.1, Newton(1.0, 2, 0.0, random))
    tree = grower.grow(derivatives, np.arange(300, dtype=np.int32), np.arange(5), shape, 7)
    grower.close()
    return tree


@pytest.mark.parametrize("leaves", [None, 20])
def test_more_histograms_change_nothing(leaves: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf-wise tree of 20 leaves has more open nodes than one histogram, which doubles five times."""
    trees = []
    for histograms in (1, 64):
        monkeypatch.setattr("ldl.methods.forest.boosted_tree.HISTOGRAMS", histograms)
        trees.append(grow(1, leaves, False))
    assert all(np.array_equal(one, other) for one, other in zip(*trees))
    assert len(trees[0].values) == leaves or leaves is None


@pytest.mark.parametrize("random", [False, True])
def test_searches_by_threads_and_by_the_loop_find_the_same(random: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = []
    for additions in (0, 2000, 10**9):
        monkeypatch.setattr("ldl.methods.forest.boosted_tree.ADDITIONS_WORTH_THREADS", additions)
        trees.append(grow(3, None, random))
    for tree in trees[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(trees[0], tree))
    assert len(trees[0].feature) > 20


def test_growth_ends_at_its_limits() -> None:
    """Trees of no rows to spare, of depth 0 and of two leaves."""
    for seed in range(20):
        rows, derivatives, sampled, features, shape = problem(seed)
        grower = Grower(make_bins(rows), 1, Collective(), torch.device("cpu"))
        for random in (False, True):
            rules = shape.newton._replace(random=random)
            stump = Shape(5, 2, 0.3, rules)
            assert len(grower.grow(derivatives, sampled.copy(), features, stump).feature) in (1, 3)
            root = grower.grow(derivatives, sampled.copy(), features, stump._replace(depth=0))
            gradient, hessian = np.split(derivatives[sampled].astype(np.float64).sum(0), 2)
            np.testing.assert_allclose(root.values[0], -0.3 * gradient / (hessian + rules.l2), rtol=1e-5, atol=1e-7)
