"""The grower against a slow reference, and what its searches promise."""

from __future__ import annotations

import numpy as np
import pytest
import reference_tree

from ldl.forest.columns import make_columns
from ldl.forest.draws import bootstrap, stream
from ldl.forest.grower import Tree, grow
from ldl.forest.impurity import log_table
from ldl.forest.search import EXACT, LAYOUTS, Rules

RULES = Rules(
    search=EXACT, depth=20, min_samples=2, min_leaf=1, min_gain=0.0, tries=10**6, alpha=0.25, beta=8.0, block=32
)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random problem of few rows: features with ties, constants and doubles, labels that repeat or are one-hot."""
    rng = np.random.default_rng(seed)
    rows, width, labels = rng.integers(1, 150), rng.integers(1, 7), rng.integers(2, 6)
    x = rng.normal(size=(rows, width))
    for f in range(width):
        kind = rng.integers(6)
        if kind == 0:
            x[:, f] = rng.integers(3, size=rows)
        elif kind == 1:
            x[:, f] = 1.5
        elif kind == 2:
            x[:, f] = rng.random(rows) < 0.1
        elif kind == 3:
            x[:, f] = np.where(rng.random(rows) < 0.6, 0.25, x[:, f])
        elif kind == 4:
            x[:, f] = x[:, rng.integers(width)]
    kind = rng.integers(5)
    if kind == 0:
        d = np.eye(labels)[rng.integers(labels, size=rows)]
    elif kind == 1:
        votes = rng.multinomial(4, np.full(labels, 1 / labels), size=rows)
        d = votes / 4
    elif kind == 2:
        d = np.repeat(rng.dirichlet(np.ones(labels), 1), rows, axis=0)
    elif kind == 3:
        d = rng.dirichlet(np.ones(labels), 3)[(x[:, 0] > 0).astype(int) + (x[:, -1] > 0.5)]
    else:
        d = rng.dirichlet(np.ones(labels), rows)
    return x.astype(np.float32), d.astype(np.float32)


def plant(x: np.ndarray, d: np.ndarray, rules: Rules, sampling: float = 0.8, seed: int = 0) -> Tree:
    rows, weights = bootstrap(len(x), sampling, True, seed, 0)
    columns = make_columns(x, LAYOUTS[rules.search])
    return grow(columns, rows, weights, d, log_table(int(weights.sum())), rules, stream(seed, 0))


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
