"""Trees of a forest against a slow reference, and the properties of each search."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import reference_tree
from fakes.grown_trees import RULES, plant, problem, same, smooth

from ldl.methods.forest.binning import make_columns
from ldl.methods.forest.cluster_splits import two_means
from ldl.methods.forest.grower import (
    ADAPTIVE,
    EXACT,
    HISTOGRAM,
    RANDOM,
    Tree,
)
from ldl.methods.forest.sampling import bootstrap


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


@pytest.mark.parametrize("block", [1, 32])
def test_exact_grows_the_reference_tree(block: int) -> None:
    splits, pure, constant, sparse = 0, 0, 0, 0
    for seed in range(40):
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
    assert splits > 200 and pure > 4 and constant > 10 and sparse > 20


SEARCHES = {"exact": EXACT, "adaptive": ADAPTIVE, "histogram": HISTOGRAM, "random": RANDOM}


def depth_of(tree: Tree, node: int = 0) -> int:
    if tree.feature[node] < 0:
        return 0
    return 1 + max(depth_of(tree, tree.child[node]), depth_of(tree, tree.child[node] + 1))


def first_gain(tree: Tree, d: np.ndarray) -> float:
    """Information gain of a stump's split, computed anew from its leaves."""
    rows = np.sort(tree.rows)
    weights = tree.weights[np.argsort(tree.rows)]
    cluster = np.empty(len(rows), np.uint8)
    scratch = np.empty((len(rows), d.shape[1]), np.float32)
    two_means(d, rows, weights, np.arange(len(rows)).astype(np.int32), 0, len(rows), scratch, cluster)
    of = dict(zip(rows.tolist(), cluster.tolist()))

    def entropy(rows: np.ndarray) -> float:
        share = np.mean([of[row] for row in rows])
        return float(-sum(p * np.log(p) for p in (share, 1 - share) if p > 0))

    leaves = [np.repeat(tree.rows[a:b], tree.weights[a:b]) for a, b in zip(tree.start, tree.start[1:])]
    total = np.concatenate(leaves)
    return entropy(total) - sum(len(leaf) / len(total) * entropy(leaf) for leaf in leaves)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_drawn_row_is_in_the_leaf_that_its_features_lead_to(search: str) -> None:
    x, d = smooth()
    tree = plant(x, d, RULES._replace(search=SEARCHES[search], min_leaf=3, depth=9, tries=4))
    rows, weights = bootstrap(len(x), 0.8, True, 0, 0)
    order = np.argsort(tree.rows)
    assert np.array_equal(tree.rows[order], rows) and np.array_equal(tree.weights[order], weights)
    for leaf in range(len(tree.start) - 1):
        members = slice(tree.start[leaf], tree.start[leaf + 1])
        assert tree.weights[members].sum() >= 3
        for row in tree.rows[members]:
            node = 0
            while tree.feature[node] >= 0:
                node = tree.child[node] + int(x[row, tree.feature[node]] > tree.threshold[node])
            assert tree.child[node] == leaf
    assert 4 < depth_of(tree) <= 9


@pytest.mark.parametrize("search", SEARCHES)
def test_min_gain_stops_growth(search: str) -> None:
    x, d = smooth()
    rules = RULES._replace(search=SEARCHES[search])
    gain = first_gain(plant(x, d, rules._replace(depth=1)), d)
    assert len(plant(x, d, rules._replace(min_gain=gain * 1.001)).feature) == 1
    assert len(plant(x, d, rules._replace(min_gain=gain * 0.999)).feature) > 1


@pytest.mark.parametrize("search", SEARCHES)
def test_feature_subsets_try_others_at_each_node(search: str) -> None:
    x, d = smooth(width=30)
    rules = RULES._replace(search=SEARCHES[search])
    every, some = plant(x, d, rules), plant(x, d, rules._replace(tries=3))
    used = some.feature[some.feature >= 0]
    assert len(np.unique(used)) > 20
    assert every.feature[0] != some.feature[0] or not same(every, some)
    # A constant feature does not use up a try.
    constant = np.concatenate([x[:, :1], np.ones((len(x), 29), np.float32)], axis=1)
    assert len(plant(constant, d, rules._replace(tries=1)).feature) > 20
