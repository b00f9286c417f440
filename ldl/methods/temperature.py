"""One temperature for all predictions, fitted on rows that trained nothing (Guo et al. 2017; Berta et al. 2025)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.metrics.functional import KL_FLOOR

WIDEST = 100.0
"""A temperature lies between this and one over it."""
STEPS = 60
"""Halvings of that range, in logarithms: more than float64 can tell apart."""


def temper(prediction: Tensor, temperature: float) -> Tensor:
    """Distributions (..., C) with their logarithms divided by a temperature > 0; 1 leaves them as they are.

    Above 1 they become flatter, below 1 sharper; the order of the labels stays.
    """
    if temperature == 1:
        return prediction
    return (prediction.clamp_min(KL_FLOOR).log() / temperature).softmax(-1)


@torch.no_grad()
def fit_temperature(prediction: Tensor, target: Tensor, collective: Collective | None = None) -> float:
    """The temperature T with the smallest mean KL divergence of the tempered predictions from the targets.

    The divergence is convex in 1 / T, so its only minimum lies where the slope, the mean over rows of
    sum_c (q_c - d_c) log p_c with tempered q, is 0: found by halving.

    Args:
        prediction: (N, C), rows on the simplex; N may be 0 on some ranks.
        target: (N, C), likewise.
        collective: The slope is summed over its processes.

    Returns:
        T in [1/100, 100]; 1 where no temperature changes anything: without rows, or where all predictions are uniform.
    """
    collective = collective or Collective()
    logs, target = prediction.double().clamp_min(KL_FLOOR).log(), target.double()

    def slope(scale: float) -> float:
        return float(collective.sum((((scale * logs).softmax(-1) - target) * logs).sum()))

    low, high = -math.log(WIDEST), math.log(WIDEST)
    rows = float(collective.sum(logs.new_tensor(len(logs))))
    if slope(WIDEST) - slope(1 / WIDEST) <= 1e-9 * rows:
        return 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(math.exp(middle)) > 0 else (middle, high)
    return math.exp(-(low + high) / 2)
