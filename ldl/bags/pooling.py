"""MIL pooling over the instances of a bag, or over groups (Babenko et al. 2008, Table 1 and Eq. 20).

:func:`pool_logits` pools probabilities and returns both ``log p`` and ``log(1 - p)``, so that neither end of the scale
is rounded away, for any sharpness and bag size. An empty bag has the value 0.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from torch.nn.functional import logsigmoid

Pooling = Literal["lse", "gm", "nor", "isr", "lse_score"]


def lse(values: Tensor, r: float, mask: Tensor | None = None, dim: int = -1) -> Tensor:
    """Log-sum-exponential, ln(mean exp(r v)) / r: from max - ln(m)/r to max. Any values.

    Args:
        values: The values, with the m of a bag along ``dim``.
        r: Sharpness, above 0.
        mask: Which values exist, of the same shape; None for all.
        dim: The reduced dimension.
    """
    exists, values = _present(values, mask)
    top = _top(values, exists, dim)
    return torch.where(exists.any(dim), top.squeeze(dim) + _log_mean_exp(r * (values - top), exists, dim) / r, 0.0)


def pool_logits(
    logits: Tensor, pooling: Pooling, r: float = 5.0, mask: Tensor | None = None, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """Return ``log(1 - p)`` and ``log p`` of the pooled probability p of the probabilities sigmoid(logits).

    Both keep their relative precision, so that the likelihood is also exact for nearly certain bags, and are
    differentiable everywhere.

    Args:
        logits: Log odds of the instances; in boosting 2 h.
        pooling: Pooling of the probabilities; ``lse_score`` is sigmoid(2 LSE(h)), h half the log odds (Eq. 20).
        r: Sharpness of ``lse``, ``gm`` and ``lse_score``, at least 1.
        mask: Which instances exist, of the same shape; None for all. An empty bag has p = 0.
        dim: The reduced dimension.
    """
    exists, logits = _present(logits, mask)
    if pooling == "lse":
        log_not, log_p = _lse_of_probabilities(logits, r, exists, dim)
    elif pooling == "gm":
        logs = logsigmoid(logits)
        top = _top(logs, exists, dim)
        log_p = top.squeeze(dim) + _log_mean_exp(r * (logs - top), exists, dim) / r
        certain = _log_mean(logsigmoid(-logits), exists, dim)
        log_not = _log_rest(log_p, certain)
    elif pooling == "nor":
        log_not = torch.where(exists, logsigmoid(-logits), 0.0).sum(dim)
        log_p = _log_rest(log_not, _log_sum_exp(logsigmoid(logits), exists, dim))
    else:
        pooled = _log_sum_exp(logits, exists, dim) if pooling == "isr" else 2 * lse(logits / 2, r, exists, dim)
        log_not, log_p = logsigmoid(-pooled), logsigmoid(pooled)
    empty = ~exists.any(dim)
    return torch.where(empty, 0.0, log_not), torch.where(empty, -torch.inf, log_p)


def _lse_of_probabilities(logits: Tensor, r: float, exists: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    # Both ends are treated alike, as 1 - p = -LSE(-(1 - p)). For small r p, exp(r p) - 1 keeps the differences of tiny
    # p; if p may be rounded to 0, the pooled value is the mean.
    logs, values = [], []
    for sign in (-1, 1):
        share = torch.sigmoid(sign * logits)
        greatest = _top(share, exists, dim)
        shift = torch.where(r * greatest < 50, 0.0, sign * _top(sign * share, exists, dim))
        small = (r * greatest < _eps(logits)).squeeze(dim)
        value = shift.squeeze(dim) + sign * _log_mean_exp(sign * r * (share - shift), exists, dim) / r
        mean = _log_mean(logsigmoid(sign * logits), exists, dim)
        logs.append(torch.where(small, mean, torch.where(small, 1.0, value).log()))
        values.append(torch.where(small, mean.exp(), value))
    near = [value > 0.5 for value in values]
    log_not, log_p = (
        torch.where(near[side], torch.log1p(-torch.where(near[side], values[1 - side], 0.0)), logs[side])
        for side in (0, 1)
    )
    return log_not, log_p


def _present(values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the mask, and the values with 0 for missing ones, which then have neither value nor gradient."""
    if mask is None:
        return torch.ones_like(values, dtype=torch.bool), values
    return mask, torch.where(mask, values, 0.0)


def _top(values: Tensor, exists: Tensor, dim: int) -> Tensor:
    """Return the greatest value with a dimension of 1, without gradient, as it only shifts the scale."""
    top = values.detach().masked_fill(~exists, -torch.inf).amax(dim, keepdim=True)
    return top.masked_fill(~exists.any(dim, keepdim=True), 0.0)


def _mean(values: Tensor, exists: Tensor, dim: int) -> Tensor:
    return torch.where(exists, values, 0.0).sum(dim) / exists.sum(dim).clamp_min(1)


def _log_mean_exp(values: Tensor, exists: Tensor, dim: int) -> Tensor:
    less = _mean(torch.expm1(values), exists, dim)
    # For large bags, less is nearly -1.
    far = less < -0.5
    exact = torch.where(far, _mean(values.exp(), exists, dim), 1.0).log()
    return torch.where(far, exact, torch.log1p(torch.where(far, 0.0, less)))


def _log_sum_exp(values: Tensor, exists: Tensor, dim: int) -> Tensor:
    top = _top(values, exists, dim)
    total = torch.where(exists, (values - top).exp(), 0.0).sum(dim)
    return top.squeeze(dim) + torch.where(total > 0, total, 1.0).log()


def _log_mean(logs: Tensor, exists: Tensor, dim: int) -> Tensor:
    return _log_sum_exp(logs, exists, dim) - exists.sum(dim).clamp_min(1).to(logs.dtype).log()


def _log_rest(logs: Tensor, limit: Tensor) -> Tensor:
    """Return log(1 - exp(x)) of x <= 0; ``limit`` is its limit at 0."""
    near, tiny = logs > -math.log(2), logs > -_eps(logs)
    close = (-torch.expm1(torch.where(near & ~tiny, logs, -1.0))).log()
    return torch.where(tiny, limit, torch.where(near, close, torch.log1p(-torch.where(near, -1.0, logs).exp())))


def _eps(values: Tensor) -> float:
    return torch.finfo(values.dtype).eps


def locate(maps: np.ndarray) -> np.ndarray:
    """Return the expected row and column (n, 2) of the positive window from h of all windows (n, rows, columns).

    If windows are independently positive with odds exp(2 h), and exactly one is positive, the probability of each is
    proportional to its odds (the model of ISR). The mean position has the least expected squared error. It may lie
    between windows, and between several peaks.
    """
    share = softmax(2 * maps, axis=(1, 2))
    return np.stack([share.sum(2) @ np.arange(maps.shape[1]), share.sum(1) @ np.arange(maps.shape[2])], 1)
