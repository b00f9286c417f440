"""Losses of boosting: their derivatives by the scores, and what is left of them.

With the softmax p of the scores s and the target d, a distribution:

``kl`` is sum_c d_c ln(d_c / p_c). Its gradient is p_c - d_c, the diagonal of its Hessian p_c (1 - p_c)
(Friedman 2001, section 4.6).

``cdf`` is sum_j (P_j - D_j)^2 of the cumulative sums P and D. As dP_j / ds_c = p_c ([c <= j] - P_j), its gradient is
2 p_c sum_j (P_j - D_j) ([c <= j] - P_j), and the diagonal of its Gauss-Newton matrix is
2 p_c^2 sum_j ([c <= j] - P_j)^2. That falls faster than the gradient where p_c is small, and steps would grow
without bound; so the second derivative here is this diagonal over p_c, which bounds it from above.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from ldl.methods.forest.compiled import compiled, inlined
from ldl.metrics.functional import KL_FLOOR

Loss = Literal["kl", "cdf"]
KL, CDF = range(2)
LEAST_HESSIAN = 1e-6
"""Of a row and a label: where a score is sure of itself the second derivative would vanish."""


def number_of(loss: Loss) -> int:
    """The loss as compiled code knows it."""
    return get_args(Loss).index(loss)


@inlined
def _softmax(scores: np.ndarray, out: np.ndarray) -> None:
    top = scores[0]
    for score in scores:
        top = max(top, score)
    total = 0.0
    for c in range(len(scores)):
        out[c] = np.exp(np.float64(scores[c]) - np.float64(top))
        total += out[c]
    for c in range(len(scores)):
        out[c] /= total


@compiled
def derive(scores: np.ndarray, target: np.ndarray, loss: int, out: np.ndarray) -> None:
    """Fill ``out`` (N, 2 C) float32 with gradients and second derivatives, by the scores and targets (N, C)."""
    width = scores.shape[1]
    p = np.empty(width)
    for i in range(len(scores)):
        _softmax(scores[i], p)
        if loss == KL:
            for c in range(width):
                out[i, c] = p[c] - target[i, c]
                out[i, width + c] = max(p[c] * (1 - p[c]), LEAST_HESSIAN)
        else:
            _derive_cdf(p, target[i], out[i])


@inlined
def _derive_cdf(p: np.ndarray, target: np.ndarray, out: np.ndarray) -> None:
    width = len(p)
    # Sums over j of error_j P_j and of P_j^2; then, from the end, those over j >= c of error_j and of 1 - 2 P_j.
    crossed, squares, below, wanted = 0.0, 0.0, 0.0, 0.0
    for j in range(width):
        below += p[j]
        wanted += np.float64(target[j])
        crossed += (below - wanted) * below
        squares += below * below
    errors, rest = 0.0, 0.0
    for c in range(width - 1, -1, -1):
        errors += below - wanted
        rest += 1 - 2 * below
        out[c] = 2 * p[c] * (errors - crossed)
        out[width + c] = max(2 * p[c] * (rest + squares), LEAST_HESSIAN)
        below -= p[c]
        wanted -= np.float64(target[c])


@compiled
def mean_loss(scores: np.ndarray, target: np.ndarray, loss: int) -> float:
    """Mean loss over the rows of scores and targets (N, C)."""
    width = scores.shape[1]
    p = np.empty(width)
    total = 0.0
    for i in range(len(scores)):
        _softmax(scores[i], p)
        below = 0.0
        for c in range(width):
            d = np.float64(target[i, c])
            if loss == CDF:
                below += p[c] - d
                total += below * below
            elif d > 0:
                total += d * np.log(d / max(p[c], KL_FLOOR))
    return total / len(scores)
