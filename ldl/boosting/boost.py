"""Gradient boosting of the likelihood of bags (Babenko et al. 2008, Fig. 3, 5 and 6)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ldl.boosting.likelihood import Bags, Model, likelihood
from ldl.boosting.line_search import line_search
from ldl.boosting.stumps import Stump, best_stump, presort

PRECISION = 1e-3
START_LIMIT = 20.0
"""The start moves h by no more than this: probabilities from 4e-18 on, enough for noisy or over large bags."""


class Rules(NamedTuple):
    """How stumps are chosen; what each entry means is said in :class:`ldl.heads.milboost.MILBoost`."""

    groups: int
    rounds: int
    real: bool
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


def boost(bags: Bags, model: Model, rules: Rules, held: Bags | None = None, patience: int = 0) -> Ensemble:
    """Boost stumps, one for every group in turn, until no stump lowers the negative log likelihood.

    Args:
        bags: The training bags.
        model: How instances make a bag.
        rules: How stumps are chosen.
        held: Bags that are held out; None holds out none.
        patience: Rounds without a new least negative log likelihood of ``held`` after which boosting ends.
    """
    order = presort(bags.rows)
    scores = np.zeros((len(bags.rows), rules.groups))
    weights = np.empty_like(scores)
    held_scores = None if held is None else np.zeros((len(held.rows), rules.groups))
    ensemble = Ensemble()
    for sign in (1.0, -1.0):
        constant = np.full(len(scores), sign)
        step = sign * _step(scores, constant, -1, bags, model, START_LIMIT)
        ensemble.start += step
        scores += step
    if held_scores is not None:
        held_scores += ensemble.start

    def measure() -> None:
        loss = likelihood(scores, bags.starts, bags.positive, bags.negative, model, weights)
        ensemble.curve.append((loss, float("nan") if held is None else _loss(held_scores, held, model)))

    measure()
    rng = np.random.default_rng(rules.seed)
    width = bags.rows.shape[1]
    with ThreadPoolExecutor(rules.threads) as threads:
        for _ in range(rules.rounds):
            before = len(ensemble.stumps)
            for group in range(rules.groups):
                likelihood(scores, bags.starts, bags.positive, bags.negative, model, weights)
                features = np.sort(rng.choice(width, rules.tries, replace=False)) if rules.tries < width else (
                    np.arange(width)
                )  # fmt: skip
                pulled = np.ascontiguousarray(weights[:, group])
                stump = best_stump(
                    bags.rows, order, pulled, features, rules.real, 0.5 / len(bags.positive), threads, rules.threads
                )
                if stump is None:
                    continue
                longest = rules.max_step / max(abs(stump.low), abs(stump.high), 1e-12)
                step = rules.shrinkage * _step(scores, stump(bags.rows), group, bags, model, longest)
                if step == 0:
                    continue
                stump = stump._replace(low=step * stump.low, high=step * stump.high)
                scores[:, group] += stump(bags.rows)
                if held_scores is not None:
                    assert held is not None
                    held_scores[:, group] += stump(held.rows)
                ensemble.stumps.append(stump)
                ensemble.group.append(group)
            measure()
            best = int(np.argmin([loss for _, loss in ensemble.curve])) if held is not None else 0
            # With a random choice of features the next round may find what this one did not.
            if (before == len(ensemble.stumps) and rules.tries >= width) or (
                held is not None and len(ensemble.curve) - 1 - best >= patience
            ):
                break
    return ensemble


def _step(scores: np.ndarray, direction: np.ndarray, group: int, bags: Bags, model: Model, longest: float) -> float:
    return line_search(
        scores, direction, group, bags.starts, bags.positive, bags.negative, model, longest, PRECISION
    )  # fmt: skip


def _loss(scores: np.ndarray | None, bags: Bags, model: Model) -> float:
    assert scores is not None
    return likelihood(scores, bags.starts, bags.positive, bags.negative, model, np.empty_like(scores))
