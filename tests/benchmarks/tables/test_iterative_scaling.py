"""Improved iterative scaling against the equation that it solves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from benchmarks.tables.iterative_scaling import IterativeScaling, increments


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 3))
    features[:, 2] *= rng.random(40) < 0.3
    target = np.exp(features @ rng.normal(size=(3, 4)) + rng.normal(size=(40, 4)))
    return features, target / target.sum(1, keepdims=True)


def test_increments_are_the_roots() -> None:
    features, target = problem()
    predicted = np.random.default_rng(1).dirichlet(np.ones(4), 40)
    mass = np.abs(features).sum(1)
    found = increments(features, predicted, features.T @ target, mass)

    def short_of(increment: float, k: int, y: int) -> float:
        x = features[:, k]
        return (predicted[:, y] * x * np.exp(increment * np.sign(x) * mass) - target[:, y] * x).sum()

    for k, y in np.ndindex(3, 4):
        assert found[k, y] == pytest.approx(brentq(short_of, -9, 9, (k, y)), abs=1e-6)


def test_every_iteration_lowers_the_divergence() -> None:
    features, target = problem()
    losses = []
    for iterations in (0, 1, 2, 5, 20):
        model = IterativeScaling(iterations)
        model.fit(features, target)
        losses.append(-(target * np.log(model.predict(features))).sum())
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.95 * losses[0]
