"""The negative log likelihood of bags and its gradient (Babenko et al. 2008, Table 2, Eq. 15, 21 and 22)."""

from __future__ import annotations

from math import exp, expm1, log, log1p
from typing import NamedTuple, get_args

import numpy as np

from ldl.methods.boosting.pooling import Pooling
from ldl.methods.forest.compiled import compiled, inlined

LSE, GM, NOR, ISR, LSE_SCORE = range(5)
CODES = {name: code for code, name in enumerate(get_args(Pooling))}
TINY = 2.0**-52
"""Below this the second term of a series vanishes against the first."""
LIMIT = -700.0


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
def likelihood(scores: np.ndarray, bags: Bags, model: Model, weights: np.ndarray) -> float:
    """Negative log likelihood of the bags, and its negative gradient.

    Args:
        scores: (N, K) h of every instance and group, float64.
        bags: The bags; with ``model.apart`` the weights of log(1 - p) are those of its sum over a bag's instances.
        model: How instances make a bag.
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
        own = h[begin : begin + count]
        p, q, log_p, log_q, share = bag[0, :count], bag[1, :count], bag[2, :count], bag[3, :count], bag[4, :count]
        for j in range(count):
            odds = exp(-2 * abs(own[j]))
            tail = log1p(odds)
            log_p[j] = min(2 * own[j], 0.0) - tail
            log_q[j] = min(-2 * own[j], 0.0) - tail
            p[j] = (1 if own[j] > 0 else odds) / (1 + odds)
            q[j] = (odds if own[j] > 0 else 1) / (1 + odds)
        if count == 1:
            some, none, share[0] = log_p[0], log_q[0], 1.0
        elif model.pooling == LSE:
            some, none = _lse(p, q, log_p, log_q, model.r, share)
        elif model.pooling == GM:
            some, none = _gm(log_p, log_q, model.r, share)
        elif model.pooling == NOR:
            none = log_q.sum()
            some = _log_rest(none) if none < -TINY else _log_sum_exp(log_p)
        else:
            some, none = _odds(own, 2.0 if model.pooling == ISR else model.r, model.pooling, share)
        # 0 of nothing stays 0, were the likelihood infinite.
        if positive[i] > 0:
            loss -= positive[i] * some
        if negative[i] > 0:
            loss -= negative[i] * (log_q.sum() if model.apart else none)
        # Of a probability below 1e-304 the weights vanish, instead of being 0 times infinity.
        rise, fall = 2 * positive[i] * exp(-max(some, LIMIT)), 2 * negative[i] * exp(-max(none, LIMIT))
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
    """log p and log(1 - p) of a bag, as all of its kind here; ``share`` is filled with the softmax of Table 2."""
    top, rest = p.max(), q.max()
    # The sum over exp(r p) - 1 keeps what tiny p differ by, but must not overflow; likewise for 1 - p = -LSE(-q), where
    # that over exp(-r q) - 1 must not be rounded to -1 throughout.
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
    # Rounded to 0, a probability is the mean of those of its bag.
    some = log(up) if r * top >= TINY else _log_sum_exp(log_p) - log(len(p))
    none = log(down) if r * rest >= TINY else _log_sum_exp(log_q) - log(len(p))
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
    return some, _log_rest(some) if some < -TINY else _log_sum_exp(log_q) - log(len(log_q))


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
    """log(1 - exp(x)) of x < 0."""
    return log(-expm1(logs)) if logs > -0.7 else log1p(-exp(logs))
