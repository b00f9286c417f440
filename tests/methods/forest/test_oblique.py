"""Oblique trees: node models against closed forms and liblinear, routing against a loop, costs, rules at the edges."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC, LinearSVR
from torch.utils._python_dispatch import TorchDispatchMode

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import CostSensitiveForest
from ldl.labels import LabelSpace
from ldl.methods.embedding.kernels import inverse_root, rbf
from ldl.methods.forest.directions import halve, label_costs, regress, separate
from ldl.methods.forest.draws import bootstrap
from ldl.methods.forest.oblique import ObliqueRules, Truth, grow_oblique
from ldl.methods.forest.oblique_flat import leaf_means, reach
from ldl.testing import check_head

AGES = LabelSpace.ordinal(range(0, 61), "years")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 8))
Y = np.clip(np.round(20 + 12 * np.tanh(X[:, 0] + X[:, 1]) + RNG.normal(size=150)), 0, 60)


def fitted(x: np.ndarray = X, y: np.ndarray = Y, **options: Any) -> CostSensitiveForest:
    head = CostSensitiveForest(**{"seed": 0, "trees": 5, **options})
    head.build(x.shape[1], AGES)
    value = torch.from_numpy(y)
    head.fit(torch.from_numpy(x), AGES.encode(value, 2.0), Collective(), value)
    return head


def test_head_keeps_the_contract() -> None:
    check_head(lambda: CostSensitiveForest(trees=4, sets=2))


def test_head_with_a_kernel_and_a_tube_keeps_the_contract() -> None:
    check_head(lambda: CostSensitiveForest(trees=2, features=1.0, kernel="sum", epsilon=0.1, split_at="median"))


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


def test_a_machine_tells_the_clusters_apart() -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.normal(-2, 1, (30, 3)), rng.normal(2, 1, (10, 3))])
    codes = np.concatenate([np.zeros((30, 2)), np.ones((10, 2))]) + rng.normal(size=(40, 2)) * 0.1
    cluster = halve(codes, np.ones(40))
    assert len(set(cluster[:30])) == len(set(cluster[30:])) == 1 and cluster[0] != cluster[-1]
    weights, bias = separate(rows, cluster, label_costs(cluster, np.ones(40), 100.0), 1.0)
    np.testing.assert_array_equal(rows @ weights + bias > 0, cluster == 1)


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


@pytest.mark.parametrize("case", range(60))
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


def test_a_tube_that_holds_all_rows_needs_no_weights() -> None:
    weights, bias = regress(X, np.linspace(-1, 1, len(X)), np.ones(len(X)), 1.0, 1.5)
    np.testing.assert_array_equal(weights, 0)
    assert bias == 0


@pytest.mark.parametrize("options", [{}, {"features": 1.0}, {"features": 0.5, "split_at": "median"}])
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


class _Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that is made."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.numbers = max(self.numbers, made.numel())
        return made


def test_of_wide_rows_only_the_columns_of_a_split_are_read() -> None:
    wide = np.random.default_rng(0).normal(size=(150, 400))
    head = fitted(wide, depth=1, sets=1)
    with _Largest() as largest:
        reach(torch.from_numpy(wide), head.forest, head.depth)
    assert largest.numbers <= wide.size


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
    for seed in range(12):
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


def test_equal_values_are_one_leaf() -> None:
    head = fitted(y=np.full(150, 30.0))
    assert len(head.forest.sizes) == 5
    torch.testing.assert_close(head.point_estimate(torch.from_numpy(X)), torch.full((150,), 30.0).double())


def test_the_same_seed_gives_the_same_forest_and_another_seed_another() -> None:
    first, again, other = fitted(), fitted(), fitted(seed=1)
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
    assert not torch.equal(first.leaf_values, other.leaf_values)


def test_logarithms_need_positive_arguments() -> None:
    head = fitted(log_offset=2.0)
    torch.testing.assert_close(head.from_scale(head.to_scale(torch.arange(5.0))), torch.arange(5.0))
    with pytest.raises(LDLError, match="no logarithm of the value 0"):
        fitted(y=np.where(np.arange(150) == 0, 0.0, Y), log_offset=0.0)


def test_kernel_features_have_the_kernel_as_scalar_products() -> None:
    rows = torch.from_numpy(X[:30])
    mapped = rbf(rows, rows, 0.2) @ inverse_root(rbf(rows, rows, 0.2))
    torch.testing.assert_close(mapped @ mapped.T, torch.exp(-0.2 * torch.cdist(rows, rows).square()))


@pytest.mark.parametrize(
    "options",
    [{"trees": 0}, {"depth": -1}, {"penalty": 0}, {"cap": -1}, {"features": 1.5}, {"split_at": "x"}, {"kernel": "x"}],
)
def test_bad_arguments_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(LDLError, match=f"CostSensitiveForest.{next(iter(options))}"):
        CostSensitiveForest(**options).build(3, AGES)
