"""Negative log likelihood of bags, its gradient, and a line search (Babenko et al. 2008, Table 2, Eq. 15, 21, 22)."""

from __future__ import annotations

from math import exp, expm1, log, log1p
from typing import NamedTuple, get_args

import numpy as np

from ldl.bags.layout import PackedBags
from ldl.bags.pooling import Pooling
from ldl.methods.numba_kernels import compiled, inlined

LSE, GM, NOR, ISR, LSE_SCORE = range(5)
POOLING_CODES = {name: code for code, name in enumerate(get_args(Pooling))}
NEGLIGIBLE = 2.0**-52
"""Value below which the second term of a series vanishes against the first."""
LEAST_LOG = -700.0


class Model(NamedTuple):
    """How the probability of a bag is pooled from its instances.

    Attributes:
        pooling: Code of the MIL pooling, see ``POOLING_CODES``.
        r: Sharpness.
        apart: Whether the instances of a negative bag count one by one.
    """

    pooling: int
    r: float
    apart: bool


@compiled
def likelihood(scores: np.ndarray, bags: PackedBags, model: Model, weights: np.ndarray) -> float:
    """Return the negative log likelihood of the bags, and compute its negative gradient.

    Args:
        scores: (N, K) h of every instance and group, float64.
        bags: The bags. With ``model.apart``, ``negative`` weighs the sum of log(1 - p) over the instances of a bag.
        model: The pooling of instances.
        weights: (N, K) is filled with -dL/dh.
    """
    starts, positive, negative, groups = bags.starts, bags.positive, bags.negative, scores.shape[1]
    h, w = scores.reshape(-1), weights.reshape(-1)
    longest = 0
    for i in range(len(positive)):
        longest = max(longest, starts[i + 1] - starts[i])
    bag = np.empty((5, longest * groups))
    loss = 0.0
    for i in range(len(positive)):
        begin, count = starts[i] * groups, (starts[i + 1] - starts[i]) * groups
        values = h[begin : begin + count]
        p, q, log_p, log_q, share = bag[0, :count], bag[1, :count], bag[2, :count], bag[3, :count], bag[4, :count]
        for j in range(count):
            odds = exp(-2 * abs(values[j]))
            tail = log1p(odds)
            log_p[j] = min(2 * values[j], 0.0) - tail
            log_q[j] = min(-2 * values[j], 0.0) - tail
            p[j] = (1 if values[j] > 0 else odds) / (1 + odds)
            q[j] = (odds if values[j] > 0 else 1) / (1 + odds)
        if count == 1:
            some, none, share[0] = log_p[0], log_q[0], 1.0
        elif model.pooling == LSE:
            some, none = _lse(p, q, log_p, log_q, model.r, share)
        elif model.pooling == GM:
            some, none = _gm(log_p, log_q, model.r, share)
        elif model.pooling == NOR:
            none = log_q.sum()
            some = _log_rest(none) if none < -NEGLIGIBLE else _log_sum_exp(log_p)
        else:
            some, none = _odds(values, 2.0 if model.pooling == ISR else model.r, model.pooling, share)
        # A weight of 0 gives 0 even if the likelihood is infinite.
        if positive[i] > 0:
            loss -= positive[i] * some
        if negative[i] > 0:
            loss -= negative[i] * (log_q.sum() if model.apart else none)
        # For a probability below 1e-304, the weights vanish instead of being 0 times infinity.
        rise, fall = 2 * positive[i] * exp(-max(some, LEAST_LOG)), 2 * negative[i] * exp(-max(none, LEAST_LOG))
        for j in range(count):
            if model.pooling == LSE:
                up, down = rise * share[j] * p[j] * q[j], fall * share[j] * p[j] * q[j]
            elif model.pooling == GM:
                up, down = 2 * positive[i] * share[j] * q[j], fall * exp(some) * share[j] * q[j]
            elif model.pooling == NOR:
                up, down = rise * p[j] * exp(none), 2 * negative[i] * p[j]
            else:
                up, down = 2 * positive[i] * share[j] * exp(none), 2 * negative[i] * share[j] * exp(some)
            w[begin + j] = up - (2 * negative[i] * p[j] if model.apart else down)
    return loss


@inlined
def _lse(
    p: np.ndarray, q: np.ndarray, log_p: np.ndarray, log_q: np.ndarray, r: float, share: np.ndarray
) -> tuple[float, float]:
    """Return log p and log(1 - p) of a bag, and fill ``share`` with the softmax of Table 2, as the next two do."""
    top, rest = p.max(), q.max()
    # The sum over exp(r p) - 1 keeps the differences of tiny p, but must not overflow; likewise for 1 - p = -LSE(-q),
    # where exp(-r q) - 1 must not be rounded to -1 throughout.
    shift = 0.0 if r * top < 50 else top
    low = 0.0 if r * rest < 50 and r * q.min() < 5 else q.min()
    above, below = 0.0, 0.0
    for j in range(len(p)):
        more = expm1(r * (p[j] - shift))
        share[j] = more + 1
        above += more
        below += expm1(-r * (q[j] - low))
    share /= above + len(p)
    up, down = shift + log1p(above / len(p)) / r, low - log1p(below / len(p)) / r
    # A probability that is rounded to 0 is replaced by the mean over the bag.
    some = log(up) if r * top >= NEGLIGIBLE else _log_sum_exp(log_p) - log(len(p))
    none = log(down) if r * rest >= NEGLIGIBLE else _log_sum_exp(log_q) - log(len(p))
    return some if some < -0.5 else log1p(-exp(none)), none if none < -0.5 else log1p(-exp(some))


@inlined
def _gm(log_p: np.ndarray, log_q: np.ndarray, r: float, share: np.ndarray) -> tuple[float, float]:
    top = log_p.max()
    less = 0.0
    for j in range(len(log_p)):
        more = expm1(r * (log_p[j] - top))
        share[j] = more + 1
        less += more
    share /= less + len(log_p)
    some = top + log1p(less / len(log_p)) / r
    return some, _log_rest(some) if some < -NEGLIGIBLE else _log_sum_exp(log_q) - log(len(log_q))


@inlined
def _odds(h: np.ndarray, sharpness: float, pooling: int, share: np.ndarray) -> tuple[float, float]:
    top = h.max()
    total = 0.0
    for j in range(len(h)):
        share[j] = exp(sharpness * (h[j] - top))
        total += share[j]
    share /= total
    odds = 2 * top + log(total) if pooling == ISR else 2 * (top + log(total / len(h)) / sharpness)
    tail = log1p(exp(-abs(odds)))
    return min(odds, 0.0) - tail, min(-odds, 0.0) - tail


@inlined
def _log_sum_exp(logs: np.ndarray) -> float:
    top = logs.max()
    total = 0.0
    for value in logs:
        total += exp(value - top)
    return top + log(total)


@inlined
def _log_rest(logs: float) -> float:
    """Return log(1 - exp(x)) of x < 0."""
    return log(-expm1(logs)) if logs > -0.7 else log1p(-exp(logs))


LINE_SEARCH_ROUNDS = 40
SLOPE_PRECISION = 1e-3
"""Share of the slope at 0 at which the line search ends."""


@compiled
def line_search(
    scores: np.ndarray, direction: np.ndarray, group: int, bags: PackedBags, model: Model, longest: float,
    shrinkage: float,
) -> float:  # fmt: skip
    """Return the step in [0, longest] with the least negative log likelihood, or 0 if no step lowers it.

    The step grows until the slope changes sign, then the interval is cut by the slopes at its ends. The likelihood of
    bags is not concave: the result is the best of all evaluated steps, and never worse than 0. Along a direction that
    separates the bags perfectly the likelihood rises without end, so the step ends at ``longest``.

    Args:
        scores: (N, K) h.
        direction: (N,) outputs of the weak learner.
        group: The group whose h is moved, or -1 for all.
        bags: The bags.
        model: The pooling of instances.
        longest: The longest step, above 0.
        shrinkage: Factor of the step, in (0, 1]; ignored if the shorter step does not lower the loss.
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
    for _ in range(LINE_SEARCH_ROUNDS):
        _move(moved, scores, direction, group, step)
        loss = likelihood(moved, bags, model, weights)
        slope = _slope(weights, direction, group)
        if loss < least:
            best, least = step, loss
        if loss <= start and abs(slope) <= SLOPE_PRECISION * -first:
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
            # False position; an end that stays twice counts half (Illinois algorithm).
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
