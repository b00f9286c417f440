"""Gradient boosting of decision stumps on the likelihood of bags (Babenko et al. 2008, Fig. 3, 5 and 6)."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import log, sqrt
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.bags.layout import PackedBags, clusters
from ldl.bags.likelihood import Model, likelihood, line_search
from ldl.errors import LDLError
from ldl.methods.numba_kernels import compiled

VALUES_PER_THREAD = 2**18
"""Smallest number of values for each thread."""
Cut = Literal["error", "bound"]


class Stump(NamedTuple):
    """h(x) is ``high`` if x[feature] > threshold, else ``low``."""

    feature: int
    threshold: float
    low: float
    high: float

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the outputs (N,) for rows (N, F), float64."""
        return np.where(rows[:, self.feature] > np.float32(self.threshold), self.high, self.low)


def presort(rows: np.ndarray) -> np.ndarray:
    """Sort rows (N, F) by every feature, (F, N) int32; an entry ~i instead of i means that no threshold follows row i.

    There is no threshold between equal values, and none after the last row.
    """
    order = np.empty(rows.shape[::-1], np.int32)
    numbers = np.arange(len(rows), dtype=np.uint64)
    for feature in range(rows.shape[1]):
        # A value and its row in one integer sort much faster than by reference. -0 becomes 0.
        bits = (rows[:, feature] + np.float32(0)).view(np.uint32)
        keys = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64) << np.uint64(32) | numbers
        keys.sort()
        by_value = (keys & np.uint64(2**32 - 1)).astype(np.int32)
        values = keys >> np.uint64(32)
        tied = np.append(values[1:] == values[:-1], True)
        order[feature] = np.where(tied, ~by_value, by_value)
    return order


def best_stump(
    rows: np.ndarray, order: np.ndarray, weights: np.ndarray, features: np.ndarray, real: bool, cut: Cut, prior: float,
    pool: ThreadPoolExecutor | None = None, threads: int = 1,
) -> Stump | None:  # fmt: skip
    """Return the stump that fits the signs of ``weights`` best, or None if no feature varies.

    The outputs of a discrete stump are -1 and 1. Those of a real stump are half the log odds of the weights on each
    side. Both have the least weighted error, or with ``bound`` the least sum over both sides of sqrt(W+ W-), the bound
    on the error of such outputs (Schapire & Singer 1999). Of equal stumps, the stump with the lower feature, then the
    lower threshold, is returned.

    Args:
        rows: (N, F) float32.
        order: See :func:`presort`.
        weights: (N,) signed, float64: the pseudo-responses of h (Friedman 2001).
        features: Features that are tried, rising.
        real: Real-valued outputs instead of -1 and 1.
        cut: Criterion of a real stump, ``error`` or ``bound``.
        prior: Weight that smoothes log odds, as a share of all weight, above 0.
        pool: Threads that share the features; None uses this thread.
        threads: Number of threads.
    """
    search = _least_bound if real and cut == "bound" else _least_error
    # Starting a thread for less work costs more than it saves.
    parts = np.array_split(features, min(threads, 1 + len(features) * len(rows) // VALUES_PER_THREAD))
    if pool is None or len(parts) == 1:
        stumps = [search(order, weights, features)]
    else:
        stumps = list(pool.map(lambda columns: search(order, weights, columns), parts))
    _, feature, last = max(stumps, key=lambda item: item[0])
    if feature < 0:
        return None
    by_value = order[feature]
    by_value = np.where(by_value < 0, ~by_value, by_value)
    below, above = rows[by_value[last], feature], rows[by_value[last + 1], feature]
    middle = np.float32(below / 2 + above / 2)
    left = weights[by_value[: last + 1]]
    right = weights[by_value[last + 1 :]]
    low, high = _outputs(left, right, real, prior * np.abs(weights).sum())
    return Stump(int(feature), float(middle if below <= middle < above else below), low, high)


def _outputs(left: np.ndarray, right: np.ndarray, real: bool, prior: float) -> tuple[float, float]:
    if not real:
        sign = 1.0 if right.sum() >= left.sum() else -1.0
        return -sign, sign
    low, high = (0.5 * log((side[side > 0].sum() + prior) / (-side[side < 0].sum() + prior)) for side in (left, right))
    return low, high


@compiled
def _least_error(order: np.ndarray, weights: np.ndarray, features: np.ndarray) -> tuple[float, int, int]:
    """Return the greatest |sum right - sum left| of a threshold, its feature (-1 for none) and position."""
    total = weights.sum()
    best, feature, cut = 0.0, -1, -1
    for f in features:
        left = 0.0
        for position in range(order.shape[1]):
            row = order[f, position]
            if row < 0:
                left += weights[~row]
                continue
            left += weights[row]
            edge = abs(total - 2 * left)
            if edge > best:
                best, feature, cut = edge, f, position
    return best, feature, cut


@compiled
def _least_bound(order: np.ndarray, weights: np.ndarray, features: np.ndarray) -> tuple[float, int, int]:
    """Return the negative least sum over both sides of sqrt(W+ W-), its feature (-1 for none) and position."""
    whole, total = np.abs(weights).sum(), weights.sum()
    best, feature, cut = np.inf, -1, -1
    for f in features:
        size, left = 0.0, 0.0
        for position in range(order.shape[1]):
            row = order[f, position]
            weight = weights[row if row >= 0 else ~row]
            size += abs(weight)
            left += weight
            if row < 0:
                continue
            # 4 W+ W- of both sides: their sum, without roots, is a lower bound of the squared sum of their roots.
            a = max((size - left) * (size + left), 0.0)
            b = max((whole - size - total + left) * (whole - size + total - left), 0.0)
            if a + b < best:
                bound = a + b + 2 * sqrt(a) * sqrt(b)
                if bound < best:
                    best, feature, cut = bound, f, position
    return -best, feature, cut


def flat_scores(
    rows: Tensor, feature: Tensor, threshold: Tensor, low: Tensor, high: Tensor, group: Tensor, groups: int
) -> Tensor:
    """Return the sums (N, K) of the outputs of the stumps by group for rows (N, F).

    Raises:
        LDLError: A stump needs a feature that is NaN.
    """
    values = rows[:, feature]
    if bool(values.isnan().any()):
        raise LDLError("boosted stumps split by a feature that is NaN; fill missing features first")
    outputs = torch.where(values > threshold, high, low)
    return outputs.new_zeros(len(rows), groups).index_add_(1, group, outputs)


def scores_or_nan(
    rows: Tensor, feature: Tensor, threshold: Tensor, low: Tensor, high: Tensor, group: Tensor, groups: int
) -> Tensor:
    """Compute :func:`flat_scores` of rows (..., F) for a graph, (..., K); a row is NaN if a stump needs a NaN."""
    values = rows.index_select(-1, feature)
    outputs = torch.where(values.isnan(), torch.nan, torch.where(values > threshold, high, low))
    return outputs @ torch.nn.functional.one_hot(group, groups).to(outputs)


START_LIMIT = 20.0
"""Largest initial h: probabilities from 4e-18 on, enough for noisy-or over large bags."""


class BoostingOptions(NamedTuple):
    """Hyperparameters of boosting; see :class:`ldl.bags.milboost.MILBoost`."""

    groups: int
    rounds: int
    real: bool
    cut: Cut
    clustered: int
    whitened: float
    tries: int
    shrinkage: float
    max_step: float
    seed: int
    threads: int


@dataclass
class Ensemble:
    """A boosted ensemble.

    Attributes:
        start: Initial h.
        stumps: The stumps in order, scaled by their steps.
        group: The group of each stump.
        curve: Negative log likelihood of the training bags and of the held-out bags (NaN without), before the first
            round and after every round.
    """

    start: float = 0.0
    stumps: list[Stump] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=list)


class Scored:
    """Bags with the scores h (N, K) of their instances, their loss, and its negative gradient (N, K)."""

    def __init__(self, bags: PackedBags, model: Model, groups: int) -> None:
        self.bags = bags
        self.model = model
        self.scores = np.zeros((len(bags.rows), groups))
        self.weights = np.empty_like(self.scores)
        self.loss = math.nan

    def add(self, outputs: np.ndarray | float, groups: int | slice) -> None:
        """Move h of ``groups`` by ``outputs``."""
        self.scores[:, groups] += outputs
        self.loss = likelihood(self.scores, self.bags, self.model, self.weights)

    def step(self, direction: np.ndarray, group: int, longest: float, shrinkage: float = 1.0) -> float:
        """Return the best step along ``direction`` (N,), see :func:`.line_search`; a ``group`` of -1 is all groups."""
        return line_search(self.scores, direction, group, self.bags, self.model, longest, shrinkage)


def boost(
    bags: PackedBags, model: Model, rules: BoostingOptions, held: PackedBags | None = None, patience: int = 0
) -> Ensemble:
    """Boost one stump per group and round, until no stump lowers the negative log likelihood.

    Args:
        bags: The training bags.
        model: The pooling of instances.
        rules: Hyperparameters.
        held: Held-out bags, or None.
        patience: Rounds without an improvement on ``held`` after which boosting stops.
    """
    train = Scored(bags, model, rules.groups)
    test = None if held is None else Scored(held, model, rules.groups)
    sides = [train] if test is None else [train, test]
    up = np.ones(len(bags.rows))
    # The constant h with the greatest likelihood.
    ensemble = Ensemble(train.step(up, -1, START_LIMIT) or -train.step(-up, -1, START_LIMIT))
    for side in sides:
        side.add(ensemble.start, slice(None))
    ensemble.curve.append((train.loss, math.nan if test is None else test.loss))
    order = presort(bags.rows)
    width = bags.rows.shape[1]
    rng = np.random.default_rng(rules.seed)
    several = rules.groups > 1 and rules.clustered
    home = clusters(bags, rules.groups, rules.whitened, rules.seed) if several else None
    best = 0
    with ThreadPoolExecutor(rules.threads) as pool:
        for number in range(1, rules.rounds + 1):
            before = len(ensemble.stumps)
            for group in range(rules.groups):
                drawn = rng.choice(width, rules.tries, replace=False) if rules.tries < width else np.arange(width)
                weights = train.weights[:, group].copy()
                if home is not None and number <= rules.clustered and group in home:
                    weights[(weights > 0) & (home != group)] = 0
                stump = _stump(train, group, weights, order, np.sort(drawn), rules, pool)
                if stump is None:
                    continue
                for side in sides:
                    side.add(stump(side.bags.rows), group)
                ensemble.stumps.append(stump)
                ensemble.group.append(group)
            ensemble.curve.append((train.loss, math.nan if test is None else test.loss))
            if test is not None:
                best = number if test.loss < ensemble.curve[best][1] else best
                if number - best >= patience:
                    break
            # With other features, or without clusters, a later round may still find a stump.
            last = rules.tries == width and (home is None or number > rules.clustered)
            if len(ensemble.stumps) == before and last:
                break
    return ensemble


def _stump(
    train: Scored, group: int, weights: np.ndarray, order: np.ndarray, features: np.ndarray, rules: BoostingOptions,
    pool: ThreadPoolExecutor,
) -> Stump | None:  # fmt: skip
    """Return the best stump of a group by ``weights``, scaled by its step; None if it does not raise the likelihood."""
    prior = 0.5 / train.bags.size
    stump = best_stump(train.bags.rows, order, weights, features, rules.real, rules.cut, prior, pool, rules.threads)
    if stump is None or not (greatest := max(abs(stump.low), abs(stump.high))):
        return None
    step = train.step(stump(train.bags.rows), group, rules.max_step / greatest, rules.shrinkage)
    return stump._replace(low=step * stump.low, high=step * stump.high) if step else None
