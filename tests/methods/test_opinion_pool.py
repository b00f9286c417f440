"""Pools of distributions: the formulae, and weights against brute force in float64."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from ldl.errors import LDLError
from ldl.labels import KL_FLOOR
from ldl.methods.opinion_pool import LEAST_WEIGHT, MOST_WEIGHT, Mean, PoolMean, pool, pool_weights

MEANS = get_args(Mean)
BASE = np.array([0.1, 0.2, 0.3, 0.4])


def problem(seed: int, members: int = 3, rows: int = 60, labels: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Members that err in different directions, some more than others."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(rows, labels))
    noise = rng.normal(size=(members, rows, labels)) * rng.uniform(0.2, 1.5, (members, 1, 1))
    both = np.exp(np.concatenate([scores[None], scores + noise]))
    both /= both.sum(-1, keepdims=True)
    return both[1:], both[0]


def pooled(weights: np.ndarray, predictions: np.ndarray, mean: Mean) -> np.ndarray:
    """One row, one label after the other, as in the definition."""
    found = np.zeros(predictions.shape[1:])
    for row, label in np.ndindex(found.shape):
        opinions = np.maximum(predictions[:, row, label], KL_FLOOR)
        found[row, label] = weights @ opinions if mean == "arithmetic" else np.prod(opinions**weights)
    return found / found.sum(1, keepdims=True)


def divergence(weights: np.ndarray, predictions: np.ndarray, target: np.ndarray, mean: Mean) -> float:
    if mean == "arithmetic":
        found = np.einsum("m,mnc->nc", weights, predictions)
    else:
        found = np.exp(np.einsum("m,mnc->nc", weights, np.log(predictions)))
        found /= found.sum(1, keepdims=True)
    return float((target * np.log(target / found)).sum(1).mean())


@pytest.mark.parametrize("mean", MEANS)
def test_pool_is_its_definition(mean: Mean) -> None:
    predictions, _ = problem(0)
    predictions[0, :5, 1] = 0
    predictions /= predictions.sum(-1, keepdims=True)
    weights = np.array([0.2, 0.5, 0.3])
    found = pool(torch.from_numpy(predictions), torch.from_numpy(weights), mean)
    np.testing.assert_allclose(found, pooled(weights, predictions, mean), rtol=0, atol=1e-11)
    one = pool(torch.from_numpy(predictions), torch.tensor([0.0, 1.0, 0.0]), mean)
    assert torch.equal(one, torch.from_numpy(predictions[1]))


@pytest.mark.parametrize("mean", MEANS)
def test_no_other_weights_are_better(mean: Mean) -> None:
    predictions, target = problem(1)
    weights = pool_weights(predictions, target, mean)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1) and not ((weights > 0) & (weights < 1e-3)).any()
    found = divergence(weights, predictions, target, mean)
    grid = [np.array([a, b, 40 - a - b]) / 40 for a in range(41) for b in range(41 - a)]
    assert found <= min(divergence(other, predictions, target, mean) for other in grid) + 1e-9
    near = np.abs(weights + 1e-3 * np.random.default_rng(1).normal(size=(200, 3)))
    near = near / near.sum(1, keepdims=True)
    assert found <= min(divergence(other, predictions, target, mean) for other in near) + 1e-7


@pytest.mark.parametrize("mean", MEANS)
def test_the_truth_takes_all_and_a_sure_mistake_nothing(mean: Mean) -> None:
    predictions, target = problem(5, members=2)
    wrong = np.zeros_like(target)
    wrong[:, 0] = 1
    weights = pool_weights(np.stack([predictions[0], target, wrong]), target, mean)
    np.testing.assert_allclose(weights, [0, 1, 0], atol=2 * LEAST_WEIGHT)


def test_a_prediction_that_is_none_is_named() -> None:
    predictions, target = problem(6)
    predictions[1, 7, 2] = np.nan
    with pytest.raises(LDLError, match="member 1 predicts nan for row 7, label 2"):
        pool_weights(predictions, target, "geometric")


def test_the_multiplicative_pool_is_its_definition() -> None:
    predictions, _ = problem(0)
    predictions[0, :5, 1] = 0
    predictions /= predictions.sum(-1, keepdims=True)
    base = torch.from_numpy(BASE)
    for weights in ([0.2, 1.5, 0.3], [0.1, 0.0, 0.3], [1.0, 0.5, 0.0], [0.0, 0.0, 0.0]):
        found = pool(torch.from_numpy(predictions), torch.tensor(weights, dtype=torch.float64), "multiplicative", base)
        ratios = np.maximum(predictions, KL_FLOOR) / BASE
        expected = BASE * np.prod(ratios ** np.array(weights)[:, None, None], axis=0)
        np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), rtol=0, atol=1e-11)
    one = pool(torch.from_numpy(predictions), torch.tensor([0.0, 1.0, 0.0]), "multiplicative", base)
    assert torch.equal(one, torch.from_numpy(predictions[1]))


def bordley(weights: np.ndarray, predictions: np.ndarray, target: np.ndarray) -> float:
    """Mean KL divergence of the multiplicative pool, in float64."""
    found = np.exp(np.log(BASE) + np.einsum("m,mnc->nc", weights, np.log(predictions / BASE)))
    return divergence(np.ones(1), found[None] / found.sum(1)[None, :, None], target, "arithmetic")


@pytest.mark.parametrize("seed", range(2))
def test_no_other_weights_of_any_sum_are_better(seed: int) -> None:
    predictions, target = problem(seed)
    weights = pool_weights(predictions, target, "multiplicative", BASE)
    found, rng = bordley(weights, predictions, target), np.random.default_rng(seed)
    assert weights.min() >= 0 and not ((weights > 0) & (weights < LEAST_WEIGHT)).any()
    far, near = rng.uniform(0, 1.5, (500, 3)), np.abs(weights + 1e-3 * rng.normal(size=(200, 3)))
    assert found <= min(bordley(other, predictions, target) for other in far) + 1e-9
    assert found <= min(bordley(other, predictions, target) for other in near) + 1e-7
    assert found <= bordley(pool_weights(predictions, target, "geometric"), predictions, target) + 1e-7


@pytest.mark.parametrize(("power", "expected"), [(0.5, 2.0), (2.0, 0.5), (0.1, MOST_WEIGHT)])
def test_members_too_near_the_base_or_too_far_from_it_are_put_right(power: float, expected: float) -> None:
    _, target = problem(7)
    timid = BASE * (target / BASE) ** power
    weights = pool_weights(timid[None] / timid.sum(1)[None, :, None], target, "multiplicative", BASE)
    np.testing.assert_allclose(weights, [expected], rtol=1e-3)


@pytest.mark.parametrize("mean", MEANS)
def test_no_other_weights_are_better_once_unequal_ones_are_penalised(mean: Mean) -> None:
    predictions, target = problem(1)

    def penalised(weights: np.ndarray) -> float:
        return divergence(weights, predictions, target, mean) + 0.3 / 2 * float(((weights - 1 / 3) ** 2).sum())

    found = penalised(pool_weights(predictions, target, mean, shrinkage=0.3))
    grid = [np.array([a, b, 40 - a - b]) / 40 for a in range(41) for b in range(41 - a)]
    near = np.abs(1 / 3 + 0.2 * np.random.default_rng(1).normal(size=(200, 3)))
    near = near / near.sum(1, keepdims=True)
    assert found <= min(penalised(other) for other in [*grid, *near]) + 1e-9


@pytest.mark.parametrize("mean", ["geometric", "arithmetic", "multiplicative"])
def test_the_more_shrinkage_the_nearer_to_equal_weights(mean: PoolMean) -> None:
    predictions, target = problem(1, members=4)
    found = [pool_weights(predictions, target, mean, BASE, shrinkage) for shrinkage in (0.0, 0.01, 0.1, 1.0, 1e6)]
    away = [float(np.abs(weights - 0.25).sum()) for weights in found]
    assert away == sorted(away, reverse=True) and away[0] > 0.1 and away[-1] < 1e-4
