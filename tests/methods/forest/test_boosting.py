"""Losses of boosted trees by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.methods.forest.boosting import CDF, KL, LEAST_HESSIAN, derive, mean_loss

ROWS, LABELS, STEP = 7, 5, 1e-5


def scored() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    target = random.dirichlet(np.full(LABELS, 0.5), ROWS)
    target[0] = np.eye(LABELS)[2]
    return (random.normal(size=(ROWS, LABELS)) * 2).astype(np.float32), target.astype(np.float32)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def losses(scores: np.ndarray, target: np.ndarray, number: int) -> np.ndarray:
    """The loss of each row, in float64."""
    p, target = softmax(scores.astype(np.float64)), target.astype(np.float64)
    if number == KL:
        return (target * np.log(np.where(target > 0, target, 1) / p)).sum(-1)
    return np.square(p.cumsum(-1) - target.cumsum(-1)).sum(-1)


@pytest.mark.parametrize("number", [KL, CDF], ids=["kl", "cdf"])
def test_derivatives_are_finite_differences(number: int) -> None:
    """Second derivatives of ``cdf`` are the diagonal of the Gauss-Newton matrix over the probability."""
    scores, target = scored()
    out = np.empty((ROWS, 2 * LABELS), np.float32)
    derive(scores, target, number, out)
    p = softmax(scores.astype(np.float64))
    for c in range(LABELS):
        up, down = (scores + by * np.eye(LABELS)[c] for by in (STEP, -STEP))
        slope = (losses(up, target, number) - losses(down, target, number)) / (2 * STEP)
        np.testing.assert_allclose(out[:, c], slope, atol=1e-5)
        steps = (softmax(up) - softmax(down)) / (2 * STEP)
        expected = steps[:, c] if number == KL else 2 * np.square(steps.cumsum(-1)).sum(-1) / p[:, c]
        np.testing.assert_allclose(out[:, LABELS + c], expected, rtol=1e-4, atol=1e-6)
    assert mean_loss(scores, target, number, np.empty(0, np.float32)) == pytest.approx(
        losses(scores, target, number).mean(), rel=1e-5
    )


@pytest.mark.parametrize("number", [KL, CDF])
def test_sure_scores_have_finite_derivatives(number: int) -> None:
    scores = np.array([[500.0, -500, 0], [-500, 500, 0]], np.float32)
    target = np.array([[0, 1, 0], [0, 1, 0]], np.float32)
    out = np.empty((2, 6), np.float32)
    derive(scores, target, number, out)
    assert np.isfinite(out).all() and (out[:, 3:] >= np.float32(LEAST_HESSIAN)).all()
    assert np.isfinite(mean_loss(scores, target, number, np.empty(0, np.float32)))
