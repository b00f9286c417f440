"""Temperature scaling of predictions, fitted on rows without training (Guo et al. 2017; Berta et al. 2025)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.labels import KL_FLOOR

WIDEST = 100.0
"""Temperatures lie between this and its inverse."""
HALVINGS = 60
"""Halvings of the logarithmic range, enough for float64."""


def temper(prediction: Tensor, temperature: float) -> Tensor:
    """Divide the logarithms of distributions (..., C) by a temperature above 0, and normalise them.

    A temperature above 1 flattens, one below 1 sharpens, and 1 returns them unchanged. The order of labels stays.
    """
    if temperature == 1:
        return prediction
    return (prediction.clamp_min(KL_FLOOR).log() / temperature).softmax(-1)


@torch.no_grad()
def fit_temperature(
    prediction: Tensor, target: Tensor, collective: Collective | None = None, weight: Tensor | None = None
) -> float:
    """Fit the temperature T with the smallest mean KL divergence of the tempered predictions from the targets.

    The divergence is convex in 1 / T. Bisection finds its only minimum, the zero of the slope, which is the mean over
    rows of sum_c (q_c - d_c) log p_c with tempered q.

    Args:
        prediction: (N, C), rows on the simplex; N may be 0 on some ranks.
        target: (N, C), rows on the simplex.
        collective: The slope is summed over its processes.
        weight: (N,) weights of the rows; None weighs all equally.

    Returns:
        T in [1/100, 100]; 1 without rows, or if all predictions are uniform, which no temperature changes.
    """
    collective = collective or Collective()
    logs, target = prediction.double().clamp_min(KL_FLOOR).log(), target.double()
    weight = logs.new_ones(len(logs)) if weight is None else weight.double()

    def slope(scale: float) -> float:
        return float(collective.sum(weight @ (((scale * logs).softmax(-1) - target) * logs).sum(1)))

    low, high = -math.log(WIDEST), math.log(WIDEST)
    rows = float(collective.sum(weight.sum()))
    if slope(WIDEST) - slope(1 / WIDEST) <= 1e-9 * rows:
        return 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(math.exp(middle)) > 0 else (middle, high)
    return math.exp(-(low + high) / 2)
