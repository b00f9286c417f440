"""Oblique trees: node models against closed forms and liblinear, routing against a loop, costs and limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC, LinearSVR

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import CostSensitiveForest
from ldl.labels import LabelSpace
from ldl.methods.embedding import inverse_root, rbf
from ldl.methods.forest import directions
from ldl.methods.forest.directions import Changing, halve, label_costs, regress, ridge, separate
from ldl.methods.forest.oblique import ObliqueRules, Truth, grow_oblique, leaf_means, reach
from ldl.methods.forest.sampling import bootstrap
from ldl.methods.rows import Rows
from ldl.testing import check_head

AGES = LabelSpace.ordinal(range(0, 61), "years")


RNG = np.random.default_rng(0)


X = RNG.normal(size=(150, 8))


Y = np.clip(np.round(20 + 12 * np.tanh(X[:, 0] + X[:, 1]) + RNG.normal(size=150)), 0, 60)


def fitted(x: np.ndarray = X, y: np.ndarray = Y, **options: Any) -> CostSensitiveForest:
    head = CostSensitiveForest(**{"seed": 0, "trees": 5, **options})
    head.build(x.shape[1], AGES)
    value = torch.from_numpy(y)
    head.fit(Rows(torch.from_numpy(x), AGES.encode(value, 2.0), value), Collective())
    return head


def test_head_keeps_the_contract() -> None:
    check_head(lambda: CostSensitiveForest(trees=2, sets=2))


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


@pytest.mark.parametrize("options", [{}, {"features": 0.5, "split_at": "median"}])
def test_rows_reach_the_leaf_that_holds_them(options: dict[str, Any]) -> None:
    head = fitted(**options)
    forest = head.forest
    leaves = reach(head.map(torch.from_numpy(X)), forest, head.depth)
    ends = forest.sizes.cumsum(0)
    for tree in range(5):
        rows, draws = bootstrap(len(X), 1.0, True, 0, tree)
        for row, drawn in zip(rows, draws):
            leaf = int(leaves[row, tree])
            own = slice(int(ends[leaf] - forest.sizes[leaf]), int(ends[leaf]))
            place = forest.rows[own].tolist().index(row)
            assert int(forest.draws[own][place]) == drawn


def test_leaves_hold_the_mean_over_their_draws() -> None:
    head = fitted()
    forest, ends = head.forest, head.forest.sizes.cumsum(0)
    means = leaf_means(forest, torch.from_numpy(Y)[:, None])
    for leaf in range(len(forest.sizes)):
        own = slice(int(ends[leaf] - forest.sizes[leaf]), int(ends[leaf]))
        rows, draws = forest.rows[own].numpy(), forest.draws[own].numpy()
        assert float(means[leaf]) == pytest.approx(np.average(Y[rows], weights=draws))
    torch.testing.assert_close(head.leaf_values, means)
    value = head.point_estimate(torch.from_numpy(X))
    torch.testing.assert_close(value, means[head.leaves(torch.from_numpy(X))].mean(1).squeeze(1))


def _loss_of_parts(parts: list[np.ndarray], truth: Truth) -> float:
    """Variance of the codes, or entropy of the labels, of both sides, where each label of the node weighs the same."""
    frequency = Counter(truth.labels.tolist())
    loss = 0.0
    for part in parts:
        weights = np.array([1 / frequency[label] for label in truth.labels[part].tolist()])
        if truth.spreads:
            mean = np.average(truth.codes[part], axis=0, weights=weights)
            loss += float(weights @ np.square(truth.codes[part] - mean).sum(1))
        else:
            shares = [weights[truth.labels[part] == label].sum() / weights.sum() for label in frequency]
            loss -= weights.sum() * sum(share * np.log(share) for share in shares if share > 0)
    return loss


def _parts(features: np.ndarray, truth: Truth, seed: int) -> list[np.ndarray]:
    """The rows on both sides of the root, which sees one feature a set."""
    rules = ObliqueRules(1, 2, 1, 12, 5.0, 100.0, 0.0, False)
    (tree,) = grow_oblique(features, truth, rules, range(1), 1.0, False, seed)
    return [np.sort(part) for part in np.split(tree.rows, tree.sizes.cumsum()[:-1])]


@pytest.mark.parametrize("ordered", [True, False])
def test_the_set_of_features_with_the_largest_gain_of_balanced_labels_is_kept(ordered: bool) -> None:
    """One feature tells the frequent labels apart, the other the rare one."""
    choices = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, 90, p=[0.48, 0.48, 0.04])
        labels[:2] = 2
        shift = rng.uniform(0.5, 4, 2)
        features = rng.normal(size=(90, 2)) + np.stack([shift[0] * (labels == 1), shift[1] * (labels == 2)], 1)
        codes = np.array([0.0, 1, 4])[labels][:, None] if ordered else np.eye(3)[labels]
        truth = Truth(codes, labels, ordered, ordered)
        alone = [_parts(features[:, [column]], truth, seed) for column in (0, 1)]
        best = int(np.argmin([_loss_of_parts(parts, truth) for parts in alone]))
        assert all(np.array_equal(*pair) for pair in zip(_parts(features, truth, seed), alone[best]))
        choices.append(best)
    assert set(choices) == {0, 1}


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


def test_depth_and_least_rows_end_growth() -> None:
    assert int(fitted(depth=0).forest.sizes.numel()) == 5
    forest = fitted(depth=2, features=1.0).forest
    assert len(forest.sizes) <= 5 * 4
    splits = fitted(min_samples=60, features=1.0).forest
    assert len(splits.sizes) < len(fitted(min_samples=5, features=1.0).forest.sizes)


def test_logarithms_need_positive_arguments() -> None:
    head = fitted(log_offset=2.0)
    torch.testing.assert_close(head.from_scale(head.to_scale(torch.arange(5.0))), torch.arange(5.0))
    with pytest.raises(LDLError, match="no logarithm of the value 0"):
        fitted(y=np.where(np.arange(150) == 0, 0.0, Y), log_offset=0.0)


def test_kernel_features_have_the_kernel_as_scalar_products() -> None:
    rows = torch.from_numpy(X[:30])
    mapped = rbf(rows, rows, 0.2) @ inverse_root(rbf(rows, rows, 0.2))
    torch.testing.assert_close(mapped @ mapped.T, torch.exp(-0.2 * torch.cdist(rows, rows).square()))


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
    monkeypatch.setattr(directions, "FEW", 0)
    many = directions.separate(rows, cluster, costs, 2.0)
    np.testing.assert_allclose(many[0], few[0], atol=1e-6)
    assert many[1] == pytest.approx(few[1], abs=1e-6)
