"""Gradient boosting of the likelihood of bags (Babenko et al. 2008, Fig. 3, 5 and 6)."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ldl.methods.boosting.clusters import clusters
from ldl.methods.boosting.likelihood import Bags, Model, likelihood
from ldl.methods.boosting.line_search import line_search
from ldl.methods.boosting.stumps import Cut, Stump, best_stump, presort

START_LIMIT = 20.0
"""The start moves h by no more than this: probabilities from 4e-18 on, enough for noisy or over large bags."""


class Rules(NamedTuple):
    """How stumps are chosen; what each entry means is said in :class:`ldl.heads.milboost.MILBoost`."""

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
    """What was boosted.

    Attributes:
        start: h before any stump.
        stumps: The stumps, scaled by their steps, in the order in which they were added.
        group: The group of each.
        curve: Negative log likelihood of the training bags, and of those held out (NaN without), before the first
            round and after every one.
    """

    start: float = 0.0
    stumps: list[Stump] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=list)


class Scored:
    """Bags with the scores h (N, K) of their instances, the likelihood of these, and its negative gradient (N, K)."""

    def __init__(self, bags: Bags, model: Model, groups: int) -> None:
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
        """How far to go along ``direction`` (N,), at most ``longest``; 0 where that does not help. -1 is all groups."""
        return line_search(self.scores, direction, group, self.bags, self.model, longest, shrinkage)


def boost(bags: Bags, model: Model, rules: Rules, held: Bags | None = None, patience: int = 0) -> Ensemble:
    """Boost stumps, one for every group in turn, until no stump lowers the negative log likelihood.

    Args:
        bags: The training bags.
        model: How instances make a bag.
        rules: How stumps are chosen.
        held: Bags that are held out; None holds out none.
        patience: Rounds without a new least negative log likelihood of ``held`` after which boosting ends.
    """
    train = Scored(bags, model, rules.groups)
    test = None if held is None else Scored(held, model, rules.groups)
    sides = [train] if test is None else [train, test]
    up = np.ones(len(bags.rows))
    # The constant h of greatest likelihood.
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
            # Of features drawn anew, or without clusters, a later round may find what this one did not.
            last = rules.tries == width and (home is None or number > rules.clustered)
            if len(ensemble.stumps) == before and last:
                break
    return ensemble


def _stump(
    train: Scored, group: int, weights: np.ndarray, order: np.ndarray, features: np.ndarray, rules: Rules,
    pool: ThreadPoolExecutor,
) -> Stump | None:  # fmt: skip
    """The best stump by ``weights`` for a group, scaled by its step; None where it does not raise the likelihood."""
    prior = 0.5 / len(train.bags.positive)
    stump = best_stump(train.bags.rows, order, weights, features, rules.real, rules.cut, prior, pool, rules.threads)
    if stump is None or not (greatest := max(abs(stump.low), abs(stump.high))):
        return None
    step = train.step(stump(train.bags.rows), group, rules.max_step / greatest, rules.shrinkage)
    return stump._replace(low=step * stump.low, high=step * stump.high) if step else None
