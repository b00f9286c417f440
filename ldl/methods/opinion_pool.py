"""Pools of opinions (Genest & Zidek, Statistical Science 1986): distributions of several experts made one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from torch import Tensor

from ldl.errors import LDLError
from ldl.methods.traced import traced
from ldl.metrics.functional import KL_FLOOR

Mean = Literal["geometric", "arithmetic"]

LEAST_WEIGHT = 1e-3
"""Smaller weights become 0: what they add is less than what another draw of the rows would change."""


def pool(predictions: Tensor, weights: Tensor, mean: Mean) -> Tensor:
    """Weighted mean of distributions, along the first dimension.

    Args:
        predictions: (M, ..., C) on the simplex.
        weights: (M,) on the simplex. A member that has all of it is given as it is.
        mean: ``arithmetic``, the linear pool; or ``geometric``, normalised, the logarithmic one, in which predictions
            are raised to ``KL_FLOOR`` first, so that no single member can rule a label out.

    Returns:
        (..., C) on the simplex.
    """
    if not traced() and len(sure := (weights == 1).nonzero()):
        return predictions[int(sure[0])]
    weights = weights.to(predictions.dtype).reshape(-1, *[1] * (predictions.ndim - 1))
    if mean == "arithmetic":
        return (weights * predictions).sum(0)
    return (weights * predictions.clamp_min(KL_FLOOR).log()).sum(0).softmax(-1)


def pool_weights(predictions: np.ndarray, target: np.ndarray, mean: Mean) -> np.ndarray:
    """Weights with which the pool has the smallest mean KL divergence from the target.

    For both means that is convex in the weights. Sequential least squares (scipy's SLSQP) with the exact gradient, from
    equal weights and in float64: the same input gives the same weights.

    Args:
        predictions: (M, N, C) on the simplex; raised to ``KL_FLOOR``.
        target: (N, C) on the simplex.
        mean: As :func:`pool` takes it.

    Returns:
        (M,) on the simplex, none in (0, ``LEAST_WEIGHT``).

    Raises:
        LDLError: a prediction is not finite.
    """
    wrong = np.argwhere(~np.isfinite(predictions))
    if len(wrong):
        member, row, label = wrong[0]
        raise LDLError(f"member {member} predicts {predictions[member, row, label]} for row {row}, label {label}")
    predictions = np.maximum(predictions, KL_FLOOR, dtype=np.float64)
    target, members = np.asarray(target, np.float64), len(predictions)
    objective = _linear if mean == "arithmetic" else _logarithmic
    given = predictions if mean == "arithmetic" else np.log(predictions)
    found = minimize(
        objective, np.full(members, 1 / members), (given, target), "SLSQP", jac=True, bounds=[(0, 1)] * members,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 1000},
    )  # fmt: skip
    weights = np.where(found.x < LEAST_WEIGHT, 0.0, found.x)
    return weights / weights.sum()


def _linear(weights: np.ndarray, predictions: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross-entropy of the linear pool, and its gradient."""
    pooled = np.tensordot(weights, predictions, 1)
    return -(target * np.log(pooled)).sum() / len(target), -(predictions * (target / pooled)).sum((1, 2)) / len(target)


def _logarithmic(weights: np.ndarray, logs: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross-entropy of the logarithmic pool, and its gradient."""
    scores = np.tensordot(weights, logs, 1)
    loss = (logsumexp(scores, 1) * target.sum(1)).sum() - (target * scores).sum()
    surplus = softmax(scores, 1) * target.sum(1, keepdims=True) - target
    return loss / len(target), (surplus * logs).sum((1, 2)) / len(target)
