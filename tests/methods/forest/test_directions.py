"""Models of the nodes of oblique trees against closed forms and liblinear."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC, LinearSVR

from ldl.methods.forest import directions
from ldl.methods.forest.directions import Changing, halve, label_costs, regress, ridge, separate
from ldl.methods.forest.oblique import ObliqueRules, Truth, grow_oblique
from ldl.methods.forest.sampling import bootstrap


def test_costs_are_the_odds_against_a_label_up_to_the_cap() -> None:
    labels, draws = np.array([3, 3, 5, 9]), np.array([4, 2, 3, 1])
    raw = np.array([0.4 / 0.6, 0.4 / 0.6, 0.7 / 0.3, 0.9 / 0.1])
    for cap in (100.0, 2.0):
        expected = np.minimum(raw, cap)
        np.testing.assert_allclose(label_costs(labels, draws, cap), expected / (expected @ draws / 10))
    np.testing.assert_array_equal(label_costs(labels, draws, 0.0), 1)
    np.testing.assert_array_equal(label_costs(np.zeros(4), draws, 100.0), 1)


def test_a_tube_gives_liblinears_solution() -> None:
    rng = np.random.default_rng(1)
    rows, values, costs = rng.normal(size=(60, 4)), rng.normal(size=60), rng.uniform(0.1, 3, 60)

    def loss(weights: np.ndarray, bias: float) -> float:
        beyond = np.maximum(0, np.abs(values - rows @ weights - bias) - 0.3)
        return weights @ weights + 2.0 * costs @ beyond**2

    ours = regress(rows, values, costs, 2.0, 0.3)
    peer = LinearSVR(C=1.0, epsilon=0.3, loss="squared_epsilon_insensitive", dual=False, intercept_scaling=10.0)
    peer.fit(rows, values, costs)
    assert loss(*ours) <= loss(peer.coef_, float(np.ravel(peer.intercept_)[0])) * 1.001
    # Without a tube the closed form is the limit.
    narrow, closed = regress(rows, values, costs, 2.0, 1e-9), regress(rows, values, costs, 2.0, 0.0)
    np.testing.assert_allclose(narrow[0], closed[0], atol=0.02)


def test_a_machine_gives_liblinears_solution() -> None:
    rng = np.random.default_rng(3)
    rows, costs = rng.normal(size=(80, 5)), rng.uniform(0.1, 3, 80)
    cluster = (rows[:, 0] + rng.normal(size=80) > 0.8).astype(np.uint8)
    weights, bias = separate(rows, cluster, costs, 2.0)
    # liblinear halves ||w||^2, and penalises the intercept, of which so large a scale leaves little.
    peer = LinearSVC(C=1.0, loss="squared_hinge", dual=False, intercept_scaling=100.0, tol=1e-8, max_iter=100_000)
    peer.fit(rows, cluster, costs)
    np.testing.assert_allclose(weights, peer.coef_[0], atol=1e-4)
    assert bias == pytest.approx(peer.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("case", range(8))
def test_machines_are_where_the_gradient_is_0(case: int) -> None:
    """Of narrow and wide problems, such as can be told apart and such as cannot, a few rows among them."""
    rng = np.random.default_rng(case)
    count, width = int(rng.integers(4, 60)), int(rng.integers(1, 30))
    rows, costs, penalty = rng.normal(1, 2, (count, width)), rng.uniform(0.01, 10, count), 10 ** rng.uniform(-2, 3)
    score = rows @ rng.normal(size=width)
    noisy = score + rng.uniform(0, 2) * score.std() * rng.normal(size=count)
    if case % 2:
        epsilon = rng.uniform(0.01, 1) * noisy.std()
        weights, bias = regress(rows, noisy, costs, penalty, epsilon)
        short = noisy - rows @ weights - bias
        lost = costs * np.sign(short) * np.maximum(0, np.abs(short) - epsilon)
    else:
        cluster = noisy > np.median(noisy)
        weights, bias = separate(rows, cluster, costs, penalty)
        side = np.where(cluster, 1.0, -1.0)
        lost = costs * side * np.maximum(0, 1 - side * (rows @ weights + bias))
    scale = penalty * costs @ np.abs(rows).sum(1)
    np.testing.assert_allclose(2 * weights - 2 * penalty * lost @ rows, 0, atol=1e-6 * scale)
    assert lost.sum() == pytest.approx(0, abs=1e-6 * costs.sum())


def test_rows_that_all_go_to_the_rare_cluster_are_parted_at_their_mean_score() -> None:
    """Signs that hardly tell: costs, which outweigh shares, make all rows the rare cluster's."""
    rng = np.random.default_rng(0)
    rare = rng.random(300) < 0.15
    features = np.where(rng.random((300, 4)) < 0.5 + 0.1 * rare[:, None], 0.5, -0.5)
    truth = Truth(np.eye(2)[rare.astype(int)], rare.astype(int), False, False)
    rows, draws = bootstrap(300, 1.0, True, 0, 0)
    cluster = halve(truth.codes[rows], draws)
    costs = label_costs(cluster, draws, 100.0) * draws
    direction, bias = separate(features[rows], cluster, costs, 5.0)
    scores = features[rows] @ direction
    assert (scores + bias > 0).all() or (scores + bias < 0).all()
    (tree,) = grow_oblique(features, truth, ObliqueRules(1, 2, 4, 5, 5.0, 100.0, 0.0, False), range(1), 1.0, True, 0)
    left = scores < np.average(scores, weights=draws)
    assert 0 < left.sum() < len(rows)
    np.testing.assert_array_equal(np.sort(tree.rows[: tree.sizes[0]]), rows[left])
    np.testing.assert_array_equal(features[rows] @ tree.weights[0] < tree.threshold[0], left)


def least_squares(rows: np.ndarray, values: np.ndarray, costs: np.ndarray, penalty: float) -> np.ndarray:
    """Weights and intercept (D + 1,) of rows (n, D)."""
    root, width = np.sqrt(costs)[:, None], rows.shape[1]
    # One more row for each weight, none for the intercept.
    design = np.vstack([np.hstack([rows, np.ones((len(rows), 1))]) * root, np.eye(width, width + 1) / np.sqrt(penalty)])
    return np.linalg.lstsq(design, np.concatenate([values * root[:, 0], np.zeros(width)]))[0]


@pytest.mark.parametrize("width", [3, 40])
@pytest.mark.parametrize("known", [False, True])
def test_ridge_is_weighted_least_squares(width: int, known: bool) -> None:
    rng = np.random.default_rng(width)
    rows, values, costs = rng.normal(3, 1, (20, width)), rng.normal(size=20), rng.uniform(0.1, 3, 20)
    weights, bias = regress(rows, values, costs, 0.7, 0.0, rows @ rows.T if known else None)
    np.testing.assert_allclose(np.append(weights, bias), least_squares(rows, values, costs, 0.7), atol=1e-8)


@pytest.mark.parametrize("median", [False, True])
@pytest.mark.parametrize(("count", "width"), [(60, 4), (20, 40)])
def test_a_node_minds_draws_and_rare_labels(count: int, width: int, median: bool) -> None:
    """Of few rows the scalar products are known. One label in five is rare, and its odds are above the cap."""
    rng = np.random.default_rng(width)
    labels = np.arange(count) % 10 // 4
    features, values = rng.normal(size=(count, width)), labels + rng.exponential(size=count)
    truth, rules = Truth(values[:, None], labels, True, True), ObliqueRules(1, 2, width, 1, 0.7, 3.0, 0.0, median)
    (tree,) = grow_oblique(features, truth, rules, range(1), 1.0, True, 0)
    rows, draws = bootstrap(count, 1.0, True, 0, 0)
    drawn = np.repeat(rows, draws)
    share = np.array([(labels[drawn] == label).mean() for label in labels[rows]])
    costs = np.minimum((1 - share) / share, 3.0)
    assert 0 < (costs == 3.0).sum() < len(rows)
    costs *= draws / np.average(costs, weights=draws)
    expected = least_squares(features[rows], values[rows], costs, 0.7)
    np.testing.assert_allclose(tree.weights[0], expected[:-1], atol=1e-8)
    cut = np.median(values[drawn]) if median else values[drawn].mean()
    assert tree.threshold[0] == pytest.approx(cut - expected[-1], abs=1e-8)


@pytest.mark.parametrize(("width", "middle"), [(4, 0.0), (4, 1e6), (200, 0.0)])
def test_of_any_sequence_of_rows(width: int, middle: float) -> None:
    rng = np.random.default_rng(width)
    rows, costs = rng.normal(middle, 1, (120, width)), rng.uniform(0.1, 3, 120)
    changing = Changing(rows, costs, 0.7)
    own = np.ones(120, bool)
    for share in (0.0, 0.1, 0.02, 0.9, 0.02, 0.0):
        own = own ^ (rng.random(120) < share)
        values = rng.normal(size=120)
        weights, bias = changing.solve(own, values)
        expected = ridge(rows[own], values[own], costs[own], 0.7)
        np.testing.assert_allclose(weights, expected[0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(rows @ weights + bias, rows @ expected[0] + expected[1], atol=1e-6)


@pytest.mark.parametrize("width", [5, 150])
def test_machines_of_many_numbers_are_those_of_few(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(width)
    rows, costs = rng.normal(size=(100, width)), rng.uniform(0.1, 3, 100)
    cluster = (rows[:, 0] + rng.normal(size=100) > 0.5).astype(np.uint8)
    few = directions.separate(rows, cluster, costs, 2.0)
    monkeypatch.setattr(directions, "FRESH_SUM_ENTRIES", 0)
    many = directions.separate(rows, cluster, costs, 2.0)
    np.testing.assert_allclose(many[0], few[0], atol=1e-6)
    assert many[1] == pytest.approx(few[1], abs=1e-6)
