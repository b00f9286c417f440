"""The negative log likelihood of bags and its gradient (Babenko et al. 2008, Table 2, Eq. 15, 21 and 22)."""

from __future__ import annotations

from math import exp, expm1, log, log1p
from typing import NamedTuple, get_args

import numpy as np

from ldl.forest.compiled import compiled, inlined
from ldl.pooling import Pooling

LSE, GM, NOR, ISR, LSE_SCORE = range(5)
CODES = {name: code for code, name in enumerate(get_args(Pooling))}
TINY = 2.0**-52
"""Below this the second term of a series vanishes against the first."""


class Bags(NamedTuple):
    """Training bags, one instance after another.

    ``rows`` (N, F) float32; bag i has the rows ``starts[i]`` to ``starts[i + 1]``, at least one. ``positive`` and
    ``negative`` (B,) are the weights of log p and log(1 - p) in the likelihood; over all bags they sum to 1.
    """

    rows: np.ndarray
    starts: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


class Model(NamedTuple):
    """How instances make a bag: code and sharpness of the soft maximum, and whether negative instances count alone."""

    pooling: int
    r: float
    apart: bool


@compiled
def likelihood(
    scores: np.ndarray,
    starts: np.ndarray,
    positive: np.ndarray,
    negative: np.ndarray,
    model: Model,
    weights: np.ndarray,
) -> float:
    """Negative log likelihood of the bags, and its negative gradient.

    Args:
        scores: (N, K) h of every instance and group, float64.
        starts: (B + 1,) first instance of every bag, and N.
        positive: (B,) weight of log p of every bag.
        negative: (B,) weight of log(1 - p), or with ``model.apart`` of the sum of log(1 - p) over its instances.
        model: How instances make a bag.
        weights: (N, K) is filled with -dL/dh.
    """
    groups = scores.shape[1]
    h, w = scores.reshape(-1), weights.reshape(-1)
    longest = 0
    for i in range(len(positive)):
        longest = max(longest, starts[i + 1] - starts[i])
    log_p, log_q, share = np.empty(longest * groups), np.empty(longest * groups), np.empty(longest * groups)
    loss = 0.0
    for i in range(len(positive)):
        begin, count = starts[i] * groups, (starts[i + 1] - starts[i]) * groups
        own = h[begin : begin + count]
        for j in range(count):
            tail = log1p(exp(-2 * abs(own[j])))
            log_p[j] = min(2 * own[j], 0.0) - tail
            log_q[j] = min(-2 * own[j], 0.0) - tail
        some, none = soft_maximum(own, log_p, log_q, count, model.pooling, model.r, share)
        # 0 of nothing stays 0, were the likelihood infinite.
        if positive[i] > 0:
            loss -= positive[i] * some
        if negative[i] > 0 and not model.apart:
            loss -= negative[i] * none
        for j in range(count):
            up, down = slopes(log_p[j], log_q[j], share[j], some, none, model.pooling)
            if model.apart:
                down = -2 * exp(log_p[j])
                loss -= negative[i] * log_q[j]
            w[begin + j] = positive[i] * up + negative[i] * down
    return loss


@inlined
def slopes(log_p: float, log_q: float, share: float, some: float, none: float, pooling: int) -> tuple[float, float]:
    """d log p / dh_j and d log(1 - p) / dh_j of one instance j: its weight in a positive and in a negative bag."""
    if pooling == LSE:
        rise = 2 * share * exp(log_p + log_q - some)
        return rise, -2 * share * exp(log_p + log_q - none)
    if pooling == GM:
        rise = 2 * share * exp(log_q)
        return rise, -2 * share * exp(some + log_q - none)
    if pooling == NOR:
        return 2 * exp(log_p + none - some), -2 * exp(log_p)
    return 2 * share * exp(none), -2 * share * exp(some)


@inlined
def soft_maximum(
    h: np.ndarray, log_p: np.ndarray, log_q: np.ndarray, count: int, pooling: int, r: float, share: np.ndarray
) -> tuple[float, float]:
    """log p and log(1 - p) of a bag; ``share`` becomes the softmax weights that Table 2 asks for, but for noisy or."""
    if pooling == LSE:
        return _lse(log_p, log_q, count, r, share)
    if pooling == GM:
        top = log_p[:count].max()
        total, less = 0.0, 0.0
        for j in range(count):
            share[j] = exp(r * (log_p[j] - top))
            total += share[j]
            less += expm1(r * (log_p[j] - top))
        share[:count] /= total
        some = top + log1p(less / count) / r
        return some, _log_rest(some, _log_sum_exp(log_q, count) - log(count))
    if pooling == NOR:
        none = log_q[:count].sum()
        return _log_rest(none, _log_sum_exp(log_p, count)), none
    sharpness = 2.0 if pooling == ISR else r
    top = h[:count].max()
    total = 0.0
    for j in range(count):
        share[j] = exp(sharpness * (h[j] - top))
        total += share[j]
    share[:count] /= total
    odds = 2 * top + log(total) if pooling == ISR else 2 * (top + log(total / count) / r)
    tail = log1p(exp(-abs(odds)))
    return min(odds, 0.0) - tail, min(-odds, 0.0) - tail


@inlined
def _lse(log_p: np.ndarray, log_q: np.ndarray, count: int, r: float, share: np.ndarray) -> tuple[float, float]:
    p, q = exp(log_p[:count].max()), exp(log_q[:count].min())
    # The sum over exp(r p) - 1 keeps what tiny p differ by, but must not overflow; likewise for 1 - p.
    shift = 0.0 if r * p < 50 else p
    most = exp(log_q[:count].max())
    low = 0.0 if r * most < 50 else q
    total, above, below = 0.0, 0.0, 0.0
    for j in range(count):
        share[j] = exp(r * (exp(log_p[j]) - p))
        total += share[j]
        above += expm1(r * (exp(log_p[j]) - shift))
        below += expm1(-r * (exp(log_q[j]) - low))
    share[:count] /= total
    up, down = shift + log1p(above / count) / r, low - log1p(below / count) / r
    # Rounded to 0, a probability is the mean of those of its bag.
    some = log(up) if r * p >= TINY else _log_sum_exp(log_p, count) - log(count)
    none = log(down) if r * most >= TINY else _log_sum_exp(log_q, count) - log(count)
    return some if some < -0.5 else log1p(-exp(none)), none if none < -0.5 else log1p(-exp(some))


@inlined
def _log_sum_exp(logs: np.ndarray, count: int) -> float:
    top = logs[:count].max()
    total = 0.0
    for j in range(count):
        total += exp(logs[j] - top)
    return top + log(total)


@inlined
def _log_rest(logs: float, limit: float) -> float:
    """log(1 - exp(x)) of x <= 0; ``limit`` is what it tends to at 0."""
    if logs > -TINY:
        return limit
    return log(-expm1(logs)) if logs > -0.7 else log1p(-exp(logs))
