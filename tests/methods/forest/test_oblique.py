"""Oblique trees: routing against a loop, leaves, features and limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import CostSensitiveForest
from ldl.labels import LabelSpace
from ldl.methods.embedding import inverse_root, rbf
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


def test_depth_and_least_rows_end_growth() -> None:
    assert int(fitted(depth=0).forest.sizes.numel()) == 5
    forest = fitted(depth=2, features=1.0).forest
    assert len(forest.sizes) <= 5 * 4
    splits = fitted(min_samples=60, features=1.0).forest
    assert len(splits.sizes) < len(fitted(min_samples=5, features=1.0).forest.sizes)


def test_kernel_features_have_the_kernel_as_scalar_products() -> None:
    rows = torch.from_numpy(X[:30])
    mapped = rbf(rows, rows, 0.2) @ inverse_root(rbf(rows, rows, 0.2))
    torch.testing.assert_close(mapped @ mapped.T, torch.exp(-0.2 * torch.cdist(rows, rows).square()))


def test_logarithms_need_positive_arguments() -> None:
    head = fitted(log_offset=2.0)
    torch.testing.assert_close(head.from_scale(head.to_scale(torch.arange(5.0))), torch.arange(5.0))
    with pytest.raises(LDLError, match="no logarithm of the value 0"):
        fitted(y=np.where(np.arange(150) == 0, 0.0, Y), log_offset=0.0)
