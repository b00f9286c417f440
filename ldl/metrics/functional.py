"""Metrics between distributions, one number per row.

``prediction`` g and ``target`` d are (..., C) on the simplex; results are (...,). Definitions: Geng 2016,
"Label distribution learning", and Chen et al. 2018. 0/0 counts 0 in Clark, Canberra and squared chi2. ``manhattan`` and
``wasserstein`` are the soft metrics of LeWiDi 2025 (Leonardelli et al., arXiv 2510.08460).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ldl.labels import KL_FLOOR


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return numerator / torch.where(denominator > 0, denominator, 1.0)


def kl(prediction: Tensor, target: Tensor) -> Tensor:
    """Kullback-Leibler divergence sum d ln(d/g), g >= 1e-12; in [0, inf), at least float32."""
    # KL_FLOOR is 0 in float16.
    prediction, target = (
        tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in (prediction, target)
    )
    return (torch.xlogy(target, target) - target * prediction.clamp_min(KL_FLOOR).log()).sum(-1)


def mean_of(rows: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the mean of numbers (B, ...), or with weights (B,) of the rows their weighted mean."""
    if weight is None:
        return rows.mean()
    weight = weight.to(rows).reshape(-1, *[1] * (rows.ndim - 1)).expand_as(rows)
    return (weight * rows).sum() / weight.sum()


def chebyshev(prediction: Tensor, target: Tensor) -> Tensor:
    """max |d - g|; in [0, 1]."""
    return (target - prediction).abs().amax(-1)


def clark(prediction: Tensor, target: Tensor) -> Tensor:
    """sqrt(sum ((d - g) / (d + g))^2); in [0, sqrt(C)]."""
    return _ratio(target - prediction, target + prediction).square().sum(-1).sqrt()


def canberra(prediction: Tensor, target: Tensor) -> Tensor:
    """sum |d - g| / (d + g); in [0, C]."""
    return _ratio((target - prediction).abs(), target + prediction).sum(-1)


def cosine(prediction: Tensor, target: Tensor) -> Tensor:
    """Cosine of the angle between the two; in [0, 1], higher is better."""
    return (target * prediction).sum(-1) / (target.norm(dim=-1) * prediction.norm(dim=-1))


def intersection(prediction: Tensor, target: Tensor) -> Tensor:
    """sum min(d, g); in [0, 1], higher is better."""
    return torch.minimum(target, prediction).sum(-1)


def euclidean(prediction: Tensor, target: Tensor) -> Tensor:
    """sqrt(sum (d - g)^2); in [0, sqrt(2)]."""
    return (target - prediction).square().sum(-1).sqrt()


def sorensen(prediction: Tensor, target: Tensor) -> Tensor:
    """sum |d - g| / sum (d + g); in [0, 1]."""
    return (target - prediction).abs().sum(-1) / (target + prediction).sum(-1)


def squared_chi2(prediction: Tensor, target: Tensor) -> Tensor:
    """sum (d - g)^2 / (d + g); in [0, 2]."""
    return _ratio((target - prediction).square(), target + prediction).sum(-1)


def fidelity(prediction: Tensor, target: Tensor) -> Tensor:
    """sum sqrt(d g); in [0, 1], higher is better."""
    return (target * prediction).clamp_min(0).sqrt().sum(-1)


def manhattan(prediction: Tensor, target: Tensor) -> Tensor:
    """sum |d - g|; in [0, 2]."""
    return (target - prediction).abs().sum(-1)


def wasserstein(prediction: Tensor, target: Tensor, axis: Sequence[float]) -> Tensor:
    """Wasserstein distance of order 1, the area between the cumulative distributions, in the unit of the labels.

    ``axis`` are the rising values (C,) of the labels; the result is in [0, the range of the labels].
    """
    gaps = torch.tensor(axis, dtype=target.dtype, device=target.device).diff()
    below = (target - prediction).cumsum(-1)[..., :-1]
    return (below.abs() * gaps).sum(-1)
