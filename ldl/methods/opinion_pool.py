"""Opinion pools: the combination of the distributions of several members (Genest & Zidek, Statistical Science 1986)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from torch import Tensor

from ldl.errors import LDLError
from ldl.labels import KL_FLOOR
from ldl.methods.torch_utils import traced

Mean = Literal["geometric", "arithmetic"]
PoolMean = Literal["multiplicative", "geometric", "arithmetic"]
LEAST_WEIGHT = 1e-3
"""Smaller weights become 0, as they matter less than another draw of the rows."""
MOST_WEIGHT = 4.0
"""Limit of a weight of the multiplicative pool: that of a member without errors on few rows would be infinite."""


def pool(predictions: Tensor, weights: Tensor, mean: PoolMean, base: Tensor | None = None) -> Tensor:
    """Pool the distributions of several members along the first dimension.

    Args:
        predictions: (M, ..., C) on the simplex.
        weights: (M,), at least 0, with the sum 1 except for ``multiplicative``. If one member has the weight 1 and the
            others 0, its prediction is returned unchanged.
        mean: ``arithmetic`` is the linear pool. ``geometric`` is the normalised logarithmic pool, in which predictions
            are first raised to ``KL_FLOOR``, so that no single member can exclude a label. ``multiplicative`` is the
            logarithmic pool of ratios to ``base`` (Bordley, Management Science 1982, for two outcomes): base times the
            product of (prediction / base)^weight, normalised. A sum of weights below 1 shrinks towards the base; one
            above 1 sharpens members that are too close to it, such as means over trees.
        base: (C,) on the simplex, the prediction without features.

    Returns:
        (..., C) on the simplex.
    """
    if not traced() and len(sure := (weights == 1).nonzero()) and weights.count_nonzero() == 1:
        return predictions[int(sure[0])]
    weights = weights.to(predictions.dtype).reshape(-1, *[1] * (predictions.ndim - 1))
    if mean == "arithmetic":
        return (weights * predictions).sum(0)
    scores = (weights * predictions.clamp_min(KL_FLOOR).log()).sum(0)
    if mean == "multiplicative":
        assert base is not None
        scores = scores + (1 - weights.sum()) * base.to(scores).clamp_min(KL_FLOOR).log()
    return scores.softmax(-1)


def pool_weights(
    predictions: np.ndarray, target: np.ndarray, mean: PoolMean, base: np.ndarray | None = None, shrinkage: float = 0.0,
    shares: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Return the weights w that minimise the mean KL divergence of their pool from the target, plus a penalty.

    The penalty is shrinkage / 2 ||w - 1/M||^2. The problem is convex for every mean. It is solved by sequential least
    squares (scipy's SLSQP) with the exact gradient from equal weights, in float64 and deterministically.

    Args:
        predictions: (M, N, C) on the simplex; raised to ``KL_FLOOR``.
        target: (N, C) on the simplex.
        mean: See :func:`pool`.
        base: (C,) on the simplex, for ``multiplicative``.
        shrinkage: Strength of the penalty on unequal weights, at least 0.
        shares: (N,) share of each row in the mean, with the sum 1; None for equal shares.

    Returns:
        (M,) on the simplex, none in (0, ``LEAST_WEIGHT``); for ``multiplicative``, each at most ``MOST_WEIGHT``.

    Raises:
        LDLError: A prediction is not finite.
    """
    wrong = np.argwhere(~np.isfinite(predictions))
    if len(wrong):
        member, row, label = wrong[0]
        raise LDLError(f"member {member} predicts {predictions[member, row, label]} for row {row}, label {label}")
    predictions = np.maximum(predictions, KL_FLOOR, dtype=np.float64)
    shares = np.full(len(target), 1 / len(target)) if shares is None else shares
    target, members = np.asarray(target, np.float64) * shares[:, None], len(predictions)
    free = mean == "multiplicative"
    objective = _linear if mean == "arithmetic" else _logarithmic
    inputs = predictions if mean == "arithmetic" else np.log(predictions)
    offset = 0.0
    if free:
        assert base is not None
        offset = np.log(np.maximum(base, KL_FLOOR, dtype=np.float64))
    equal, inputs = np.full(members, 1 / members), inputs - offset

    def penalised(weights: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = objective(weights, inputs, target, offset)
        away = weights - equal
        return loss + shrinkage / 2 * float(away @ away), gradient + shrinkage * away

    result = minimize(
        penalised, equal, method="SLSQP", jac=True,
        bounds=[(0, MOST_WEIGHT if free else 1)] * members,
        constraints=() if free else {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 1000},
    )  # fmt: skip
    weights = np.where(result.x < LEAST_WEIGHT, 0.0, result.x)
    return weights if free else weights / weights.sum()


def _linear(
    weights: np.ndarray, predictions: np.ndarray, target: np.ndarray, _: float
) -> tuple[float, np.ndarray]:  # fmt: skip
    """Return the cross-entropy of the linear pool from targets times their shares, and its gradient."""
    pooled = np.tensordot(weights, predictions, 1)
    return -(target * np.log(pooled)).sum(), -(predictions * (target / pooled)).sum((1, 2))


def _logarithmic(
    weights: np.ndarray, logs: np.ndarray, target: np.ndarray, offset: np.ndarray | float
) -> tuple[float, np.ndarray]:
    """Return the same for the logarithmic pool of ``logs`` and the base ``offset``."""
    scores = np.tensordot(weights, logs, 1) + offset
    loss = (logsumexp(scores, 1) * target.sum(1)).sum() - (target * scores).sum()
    surplus = softmax(scores, 1) * target.sum(1, keepdims=True) - target
    return loss, (surplus * logs).sum((1, 2))
