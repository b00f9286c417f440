"""Trees of a forest against slow references, and the properties of each search."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import reference_tree

from ldl.methods.forest import grower
from ldl.methods.forest.binning import make_columns
from ldl.methods.forest.cluster_splits import log_table, two_means
from ldl.methods.forest.grower import (
    ADAPTIVE,
    EXACT,
    HISTOGRAM,
    LAYOUTS,
    LOG_LOSS,
    RANDOM,
    Rules,
    Tree,
    grow,
)
from ldl.methods.forest.sampling import bootstrap, stream
from ldl.methods.numba_kernels import next_share

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


def smooth(rows: int = 400, width: int = 8, labels: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Distributions that depend on the features, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width))
    scores = x @ rng.normal(size=(width, labels)) + rng.normal(size=(rows, labels))
    d = np.exp(scores)
    return x.astype(np.float32), (d / d.sum(1, keepdims=True)).astype(np.float32)


def same(one: Tree, two: Tree) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one[:6], two[:6]))


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


def test_histogram_is_exact_where_each_value_has_a_bin() -> None:
    for seed in range(30):
        x, d = problem(seed)
        assert same(plant(x, d, RULES), plant(x, d, RULES._replace(search=HISTOGRAM))), seed
    x, d = smooth(rows=3000)
    assert not same(plant(x, d, RULES), plant(x, d, RULES._replace(search=HISTOGRAM)))


@pytest.mark.parametrize("shared", [0, 300])
@pytest.mark.parametrize("beta", [0.0, 8.0])
def test_adaptive_step_is_that_of_equation_5(beta: float, shared: int) -> None:
    """One feature, distinct values but for one that many rows may share: the midpoints are those of a plain loop.

    Rows of the shared value are one step of it, and rows count once, however often they are drawn.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.permutation(500).astype(np.float32)[:, None]
        d = np.eye(2, dtype=np.float32)[(x[:, 0] + rng.normal(0, 90, 500) > 260).astype(int)]
        x[(x >= 50) & (x < 50 + shared)] = 50
        rules = RULES._replace(depth=1, block=1, search=ADAPTIVE, alpha=0.05, beta=beta)
        columns, rows = make_columns(x, LAYOUTS[ADAPTIVE]), np.arange(500, dtype=np.int32)
        draws = rng.integers(1, 4, 500).astype(np.int32)
        tree, other = (
            grow(columns, rows, draws, d, log_table(draws.sum()), rules._replace(min_gain=least), stream(0, 0))
            for least in (0.0, 0.1)
        )  # fmt: skip
        drawn, ones, values = np.repeat(x[:, 0], draws), np.repeat(d[:, 1], draws), np.unique(x)

        def entropy(part: np.ndarray) -> float:
            share = np.array([part.mean(), 1 - part.mean()])
            return float(-len(part) * sum(p * np.log(p) for p in share if p > 0))

        looked_at: dict[int, float] = {}
        left = 1
        while left < len(values):
            below = drawn < values[left]
            gain = entropy(ones) - entropy(ones[below]) - entropy(ones[~below])
            looked_at[left] = gain
            most = max(looked_at.values())
            left += max(1, int(0.05 * 500 / (1 + np.exp(beta * (gain / most - 0.5)))))
        best = max(looked_at, key=lambda left: looked_at[left])
        assert tree.evaluations == other.evaluations == len(looked_at)
        assert tree.threshold[0] == other.threshold[0] == (values[best - 1] + values[best]) / 2


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


def test_a_threshold_lies_between_neighbouring_floats() -> None:
    below = np.float32(1.0)
    above = np.nextafter(below, np.float32(2))
    x = np.array([[below], [above]] * 10)
    d = np.array([[1, 0], [0, 1]] * 10, np.float32)
    tree = plant(x, d, RULES)
    assert tree.feature.tolist() == [0, -1, -1] and below <= tree.threshold[0] < above


NEAR = 1e-6
"""Float32 distributions sum to 1 but for so much, which decides between splits that are as good."""


LOSS = RULES._replace(criterion=LOG_LOSS)


def divergence(d: np.ndarray) -> float:
    """Sum over rows of KL(row || mean of the rows), straight from its definition."""
    mean = np.broadcast_to(d.mean(0), d.shape)
    held = d > 0
    return float((d[held] * np.log(d[held] / mean[held])).sum())


def drop(x: np.ndarray, d: np.ndarray, threshold: float) -> float:
    left = x <= threshold
    return divergence(d) - divergence(d[left]) - divergence(d[~left])


def nodes(tree: Tree, x: np.ndarray, drawn: np.ndarray) -> list[tuple[int, np.ndarray, int]]:
    """Each node, its drawn rows and its depth, from the root down."""
    found, waiting = [], [(0, drawn, 0)]
    while waiting:
        node, rows, depth = waiting.pop(0)
        found.append((node, rows, depth))
        if tree.feature[node] >= 0:
            left = x[rows, tree.feature[node]] <= tree.threshold[node]
            waiting += [(tree.child[node], rows[left], depth + 1), (tree.child[node] + 1, rows[~left], depth + 1)]
    return found


@pytest.mark.parametrize("search", [EXACT, HISTOGRAM])
def test_every_split_is_the_best_and_first_of_all_midpoints(search: int) -> None:
    splits = leaves = 0
    for seed in range(20):
        x, d32 = problem(seed)
        d = d32 / d32.sum(1, keepdims=True, dtype=np.float64)
        rng = np.random.default_rng([seed, 7])
        depth, min_samples, min_leaf = (int(n) for n in rng.integers((1, 1, 1), (9, 6, 4)))
        rules = LOSS._replace(search=search, depth=depth, min_samples=min_samples, min_leaf=min_leaf)
        tree = plant(x, d32, rules, seed=seed)
        drawn = np.repeat(*bootstrap(len(x), 0.8, True, seed, 0))
        gains = np.zeros(x.shape[1])
        for node, rows, level in nodes(tree, x, drawn):
            tried = candidates(x[rows], d[rows], min_leaf)
            best = max((gain for _, _, gain in tried), default=0.0)
            near = NEAR * len(rows)
            if tree.feature[node] < 0:
                leaves += 1
                assert level == depth or len(rows) < max(min_samples, 2 * min_leaf) or best <= near, (seed, node)
                continue
            splits += 1
            feature, threshold = tree.feature[node], float(tree.threshold[node])
            mine = drop(x[rows, feature], d[rows], threshold)
            gains[feature] += mine
            assert mine >= best - near, (seed, node)
            # Of equal gains the first stays; those that are nearly equal may stand in any order.
            first = next(pair[:2] for pair in tried if pair[2] >= best - near)
            assert (feature, threshold) >= (first[0], first[1] - 1e-6), (seed, node)
            assert any(f == feature and abs(t - threshold) < 1e-6 for f, t, _ in tried), (seed, node)
        assert tree.gain == pytest.approx(gains, abs=1e-4)
    assert splits > 60 and leaves > 60


def candidates(x: np.ndarray, d: np.ndarray, min_leaf: int) -> list[tuple[int, float, float]]:
    """Feature, midpoint and gain of every split that leaves enough rows on both sides."""
    found = []
    for f in range(x.shape[1]):
        values = np.unique(x[:, f]).astype(np.float64)
        for t in (values[:-1] + values[1:]) / 2:
            count = int((x[:, f] <= t).sum())
            if min(count, len(x) - count) >= min_leaf:
                found.append((f, float(np.float32(t)), drop(x[:, f], d, t)))
    return found


def test_blocks_pass_over_splits_and_lose_none() -> None:
    """Enough rows for long blocks; the best of all midpoints is computed at once for all of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 5)).astype(np.float32)
    scores = 1.5 * np.sin(2 * x[:, :1]) * rng.normal(size=4) + x[:, 1:2] * rng.normal(size=4)
    d = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    tree = plant(x, d.astype(np.float32), LOSS._replace(depth=1))
    drawn = np.repeat(*bootstrap(3000, 0.8, True, 0, 0))
    best = []
    for f in range(5):
        order = drawn[np.argsort(x[drawn, f], kind="stable")]
        left, count = np.cumsum(d[order], 0), np.arange(1, len(order) + 1)
        right = left[-1] - left
        halves = [n * np.log(np.maximum(n, 1)) - (s * np.log(np.maximum(s, 1e-300))).sum(1)
                  for n, s in ((count, left), (count[::-1] - 1, np.maximum(right, 0)))]  # fmt: skip
        changes = x[order[:-1], f] < x[order[1:], f]
        best.append(np.where(changes, sum(halves)[:-1], np.inf).min())
    whole = divergence(d[drawn]) - (d[drawn] * np.log(d[drawn])).sum()
    assert tree.feature[0] == np.argmin(best)
    assert tree.gain.sum() == pytest.approx(whole - min(best), rel=1e-6)
    assert tree.evaluations < 0.4 * 5 * len(np.unique(drawn))


def test_a_random_split_is_the_best_of_one_threshold_a_feature() -> None:
    """The same random numbers again, for the root of each tree."""
    split = 0
    for seed in range(30):
        x, d32 = problem(seed)
        tree = plant(x, d32, LOSS._replace(search=RANDOM, depth=1, min_leaf=2), seed=seed)
        rows, weights = bootstrap(len(x), 0.8, True, seed, 0)
        drawn, state, tried = np.repeat(rows, weights), stream(seed, 0), []
        d = d32.astype(np.float64)
        for f in range(x.shape[1]):
            low, high = x[drawn, f].min(), x[drawn, f].max()
            share = next_share(state)
            threshold = min(np.float32(low + share * (np.float64(high) - np.float64(low))), high)
            left = int((x[drawn, f] <= threshold).sum())
            if min(left, len(drawn) - left) >= 2:
                tried.append((drop(x[drawn, f], d[drawn], threshold), f, threshold))
        best = max(tried, default=(0.0, -1, 0.0))
        if tree.feature[0] < 0:
            assert best[0] <= NEAR * len(drawn) or len(drawn) < 4, seed
            continue
        split += 1
        mine = drop(x[drawn, tree.feature[0]], d[drawn], tree.threshold[0])
        assert mine == pytest.approx(best[0], abs=NEAR * len(drawn)), seed
        assert tree.gain.sum() == pytest.approx(mine, abs=1e-4)
    assert split > 15


def test_no_place_is_read_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Python, which refuses what machine code does not."""
    for module in (sys.modules[__name__], grower):
        for name, function in vars(module).copy().items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    tree = plant(np.zeros((20, 1), np.float32), np.eye(2, dtype=np.float32)[[0, 1] * 10], LOSS)
    assert tree.feature.tolist() == [-1]
