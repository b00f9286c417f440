"""Losses of boosting: gradients and second derivatives by finite differences, and the losses themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ldl.methods.forest.boosting_loss import CDF, KL, LEAST_HESSIAN, derive, mean_loss
from ldl.metrics.functional import kl

ROWS, LABELS, STEP = 7, 5, 1e-5


def problem() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    target = random.dirichlet(np.full(LABELS, 0.5), ROWS)
    target[0] = np.eye(LABELS)[2]
    return random.normal(size=(ROWS, LABELS)) * 2, target


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def kl_loss(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    return -(target * np.log(softmax(scores))).sum(-1)


def cdf_loss(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.square(softmax(scores).cumsum(-1) - target.cumsum(-1)).sum(-1)


def shifted(scores: np.ndarray, label: int, by: float) -> np.ndarray:
    return scores + by * np.eye(LABELS)[label]


@pytest.mark.parametrize(("number", "loss"), [(KL, kl_loss), (CDF, cdf_loss)], ids=["kl", "cdf"])
def test_gradients_are_finite_differences(number: int, loss: object) -> None:
    scores, target = problem()
    out = np.empty((ROWS, 2 * LABELS))
    derive(scores, target, number, out)
    for c in range(LABELS):
        up, down = (loss(shifted(scores, c, by), target) for by in (STEP, -STEP))  # type: ignore[operator]
        np.testing.assert_allclose(out[:, c], (up - down) / (2 * STEP), atol=1e-8)


def test_the_second_derivatives_of_kl_are_finite_differences() -> None:
    scores, target = problem()
    out, up, down = (np.empty((ROWS, 2 * LABELS)) for _ in range(3))
    derive(scores, target, KL, out)
    for c in range(LABELS):
        derive(shifted(scores, c, STEP), target, KL, up)
        derive(shifted(scores, c, -STEP), target, KL, down)
        np.testing.assert_allclose(out[:, LABELS + c], (up[:, c] - down[:, c]) / (2 * STEP), atol=1e-8)


def test_the_second_derivatives_of_cdf_are_the_gauss_newton_diagonal_over_the_probability() -> None:
    scores, target = problem()
    out = np.empty((ROWS, 2 * LABELS))
    derive(scores, target, CDF, out)
    p = softmax(scores)
    for c in range(LABELS):
        residuals = [shifted(scores, c, by) for by in (STEP, -STEP)]
        up, down = (softmax(each).cumsum(-1) for each in residuals)
        diagonal = 2 * np.square((up - down) / (2 * STEP)).sum(-1)
        np.testing.assert_allclose(out[:, LABELS + c], diagonal / p[:, c], rtol=1e-5)
        assert (out[:, LABELS + c] >= diagonal).all()


@pytest.mark.parametrize("number", [KL, CDF])
def test_sure_scores_have_finite_derivatives(number: int) -> None:
    scores = np.array([[500.0, -500, 0], [-500, 500, 0]], np.float32)
    target = np.array([[0, 1, 0], [0, 1, 0]], np.float32)
    out = np.empty((2, 6), np.float32)
    derive(scores, target, number, out)
    assert np.isfinite(out).all() and (out[:, 3:] >= np.float32(LEAST_HESSIAN)).all()
    assert np.isfinite(mean_loss(scores, target, number))


def test_mean_losses() -> None:
    scores, target = problem()
    predicted = torch.from_numpy(softmax(scores))
    assert mean_loss(scores, target, KL) == pytest.approx(float(kl(predicted, torch.from_numpy(target)).mean()))
    assert mean_loss(scores, target, CDF) == pytest.approx(float(cdf_loss(scores, target).mean()))
