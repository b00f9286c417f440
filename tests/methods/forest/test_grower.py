"""The grower against a slow reference, and what its searches promise."""

from __future__ import annotations

import numpy as np
import pytest
import reference_tree
from forest_problems import RULES, plant, problem

from ldl.methods.forest.columns import make_columns
from ldl.methods.forest.draws import bootstrap
from ldl.methods.forest.grower import Tree


def assert_same(tree: Tree, node: int, reference: reference_tree.Node, x: np.ndarray) -> None:
    """Same features, same parting of the rows at every split, same rows in every leaf."""
    assert tree.feature[node] == reference.feature
    if reference.feature < 0:
        leaf = tree.child[node]
        part = slice(tree.start[leaf], tree.start[leaf + 1])
        assert np.repeat(tree.rows[part], tree.weights[part]).tolist() == reference.rows.tolist()
        return
    assert tree.threshold[node] == pytest.approx(reference.threshold, rel=1e-6, abs=1e-7)
    assert reference.left is not None and reference.right is not None
    assert_same(tree, tree.child[node], reference.left, x)
    assert_same(tree, tree.child[node] + 1, reference.right, x)


@pytest.mark.parametrize("block", [1, 3, 32])
def test_exact_grows_the_reference_tree(block: int) -> None:
    splits, pure, constant, sparse = 0, 0, 0, 0
    for seed in range(200):
        x, d = problem(seed)
        rng = np.random.default_rng([seed, 7])
        depth, min_samples, min_leaf = (int(n) for n in rng.integers((0, 1, 1), (15, 6, 4)))
        rules = RULES._replace(depth=depth, min_samples=min_samples, min_leaf=min_leaf, block=block)
        tree = plant(x, d, rules, seed=seed)
        rows, weights = bootstrap(len(x), 0.8, True, seed, 0)
        drawn = np.repeat(rows, weights)
        reference = reference_tree.grow(x.astype(np.float64), d.astype(np.float64), drawn, depth, min_samples, min_leaf)
        try:
            assert_same(tree, 0, reference, x)
        except AssertionError as error:
            raise AssertionError(f"problem {seed}: {error}") from error
        splits += int((tree.feature >= 0).sum())
        pure += (d == d[0]).all()
        constant += bool((x == x[0]).all(0).any())
        sparse += bool(np.isfinite(make_columns(x, "ordered").default).any())
    assert splits > 1000 and pure > 20 and constant > 50 and sparse > 100
