"""How far to go along a weak learner."""

from __future__ import annotations

import numpy as np

from ldl.methods.boosting.likelihood import Bags, Model, likelihood
from ldl.methods.forest.compiled import compiled

ROUNDS = 40
PRECISION = 1e-3
"""The slope is followed down to this share of the slope at 0."""


@compiled
def line_search(
    scores: np.ndarray, direction: np.ndarray, group: int, bags: Bags, model: Model, longest: float, shrinkage: float
) -> float:
    """A step in [0, longest] at which the negative log likelihood is least, or 0 where none lowers it.

    The step grows until the slope turns, then the interval is cut by the slopes at its ends. The likelihood of bags is
    not concave: the step found is the best of all that were looked at, and never worse than none. Along a direction
    that separates the bags perfectly the likelihood rises for ever, so the step ends at ``longest``.

    Args:
        scores: (N, K) h.
        direction: (N,) outputs of the weak learner.
        group: Which h is moved, or -1 for all.
        bags: As in :func:`ldl.methods.boosting.likelihood.likelihood`.
        model: Likewise.
        longest: The longest step, above 0.
        shrinkage: Factor of the step, in (0, 1]; left out where the shorter step would not help.
    """
    moved, weights = scores.copy(), np.empty_like(scores)
    start = likelihood(scores, bags, model, weights)
    first = _slope(weights, direction, group)
    if not first < 0:
        return 0.0
    best, least = 0.0, start
    low, high = 0.0, -1.0
    low_slope, high_slope = first, 0.0
    step = min(1.0, longest)
    kept = 0
    for _ in range(ROUNDS):
        _move(moved, scores, direction, group, step)
        loss = likelihood(moved, bags, model, weights)
        slope = _slope(weights, direction, group)
        if loss < least:
            best, least = step, loss
        if loss <= start and abs(slope) <= PRECISION * -first:
            break
        if slope < 0 and loss <= start:
            if step >= longest:
                break
            low, low_slope = step, slope
            kept = max(kept, 0) + 1
            if kept > 1:
                high_slope /= 2
        else:
            high, high_slope = step, max(slope, 0.0)
            kept = min(kept, 0) - 1
            if kept < -1:
                low_slope /= 2
        if high < 0:
            step = min(2 * step, longest)
        elif high_slope > 0:
            # False position; an end that stays twice counts half (Illinois).
            step = low + (high - low) * low_slope / (low_slope - high_slope)
            if not low < step < high:
                step = (low + high) / 2
        else:
            step = (low + high) / 2
    if shrinkage < 1:
        _move(moved, scores, direction, group, shrinkage * best)
        if likelihood(moved, bags, model, weights) < start:
            return shrinkage * best
    return best


@compiled
def _move(moved: np.ndarray, scores: np.ndarray, direction: np.ndarray, group: int, step: float) -> None:
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            if group < 0 or group == k:
                moved[i, k] = scores[i, k] + step * direction[i]


@compiled
def _slope(weights: np.ndarray, direction: np.ndarray, group: int) -> float:
    slope = 0.0
    for i in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            if group < 0 or group == k:
                slope -= weights[i, k] * direction[i]
    return slope
