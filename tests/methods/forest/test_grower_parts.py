"""What each search, and 2-means, promise on their own."""

from __future__ import annotations

import numpy as np
import pytest
from forest_problems import RULES, plant, problem

from ldl.methods.forest.columns import make_columns
from ldl.methods.forest.draws import bootstrap, stream
from ldl.methods.forest.grower import Tree, grow
from ldl.methods.forest.growing import grow_trees
from ldl.methods.forest.impurity import log_table
from ldl.methods.forest.relabel import two_means
from ldl.methods.forest.search import ADAPTIVE, EXACT, HISTOGRAM, LAYOUTS, RANDOM

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
    for seed in range(60):
        x, d = problem(seed)
        assert same(plant(x, d, RULES), plant(x, d, RULES._replace(search=HISTOGRAM))), seed
    x, d = smooth(rows=3000)
    assert not same(plant(x, d, RULES), plant(x, d, RULES._replace(search=HISTOGRAM)))


@pytest.mark.parametrize("bins", [2, 7, 256])
def test_bins_hold_equal_shares_and_rising_values(bins: int) -> None:
    values = np.random.default_rng(0).exponential(size=(5000, 1)).astype(np.float32)
    values[:700] = 0
    columns = make_columns(values, "binned", bins)
    codes, low, high = columns.codes[0], columns.low[0], columns.high[0]
    counts = np.bincount(codes, minlength=bins)
    assert len(counts) == bins and (counts > 0).all()
    assert counts[0] >= 700 and counts[1:].max() <= 1.2 * counts[1:].min() + 2
    for code in range(bins):
        assert values[codes == code].min() == low[code] and values[codes == code].max() == high[code]
    assert (high[: bins - 1] < low[1:bins]).all()


def test_a_fixed_default_value_is_not_listed() -> None:
    x = np.zeros((100, 3), np.float32)
    x[:49, 0], x[:30, 1], x[:, 2] = 1, -2, np.arange(100)
    columns = make_columns(x, "ordered")
    assert columns.default[:2].tolist() == [0, 0] and np.isnan(columns.default[2])
    assert np.diff(columns.start).tolist() == [49, 30, 100]


def test_adaptive_step_reaches_most_of_the_gain_with_few_evaluations() -> None:
    shares, counts = [], []
    for seed in range(10):
        x, d = smooth(rows=3000, seed=seed)
        stump = RULES._replace(depth=1, block=1)
        exact, adaptive = plant(x, d, stump), plant(x, d, stump._replace(search=ADAPTIVE))
        shares.append(first_gain(adaptive, d) / first_gain(exact, d))
        counts.append(adaptive.evaluations / exact.evaluations)
    assert max(shares) <= 1 + 1e-9 and np.mean(shares) > 0.9
    assert np.mean(counts) < 0.05


@pytest.mark.parametrize("shared", [0, 300])
@pytest.mark.parametrize("beta", [0.0, 3.0, 8.0])
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


def test_adaptive_step_of_one_is_exact() -> None:
    for seed in range(40):
        x, d = problem(seed)
        assert same(plant(x, d, RULES), plant(x, d, RULES._replace(search=ADAPTIVE, alpha=0.0))), seed


def test_blocks_spare_evaluations() -> None:
    x, d = smooth(rows=3000)
    plain, blocks = (plant(x, d, RULES._replace(block=block, min_samples=200)) for block in (1, 32))
    assert same(plain, blocks) and blocks.evaluations < 0.5 * plain.evaluations


def test_gain_adds_up_to_the_information_of_the_splits() -> None:
    x, d = smooth()
    stump = plant(x, d, RULES._replace(depth=1))
    assert stump.gain.sum() == pytest.approx(stump.weights.sum() * first_gain(stump, d))
    assert np.flatnonzero(stump.gain).tolist() == [stump.feature[0]]


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


@pytest.mark.parametrize("search", SEARCHES)
def test_threads_change_nothing(search: str) -> None:
    x, d = smooth()
    rules = RULES._replace(search=SEARCHES[search], tries=3)
    one, three = (list(grow_trees(x, d, rules, range(9), threads=threads)) for threads in (1, 3))
    assert all(same(a, b) for a, b in zip(one, three))
    assert not same(one[0], one[1])
    assert not same(one[0], next(iter(grow_trees(x, d, rules, [0], seed=1))))


def test_two_means_finds_separate_clusters_and_weighs_rows() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(200) < 0.3
    d = (np.where(truth[:, None], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8]) + rng.normal(0, 0.03, (200, 3))).astype(np.float32)
    rows, cluster = np.arange(200, dtype=np.int32), np.empty(200, np.uint8)
    weights = rng.integers(1, 4, 200).astype(np.int32)
    ones = two_means(d, rows, weights, rows, 0, 200, np.empty((200, 3), np.float32), cluster)
    assert (cluster == truth).all() or (cluster != truth).all()
    assert ones == weights[cluster == 1].sum()


def test_a_threshold_lies_between_neighbouring_floats() -> None:
    below = np.float32(1.0)
    above = np.nextafter(below, np.float32(2))
    x = np.array([[below], [above]] * 10)
    d = np.array([[1, 0], [0, 1]] * 10, np.float32)
    tree = plant(x, d, RULES)
    assert tree.feature.tolist() == [0, -1, -1] and below <= tree.threshold[0] < above


def test_table_is_as_long_as_the_draws() -> None:
    x, d = smooth(rows=50)
    rows, weights = bootstrap(50, 1.0, True, 0, 0)
    tree = grow(make_columns(x, LAYOUTS[EXACT]), rows, weights, d, log_table(int(weights.sum())), RULES, stream(0, 0))
    assert tree.weights.sum() == 50
