"""Rater equivalence: the number of annotators whose votes predict a further vote as well as a model does.

The power curve is the expected negative log-likelihood of one vote, predicted from k other votes on the same item by
the posterior mean under a Dirichlet prior, k = 0, 1, 2, ... A model is worth k raters if the
curve reaches the model's negative log-likelihood at k (Resnick, Kong, Schoenebeck & Weninger 2021, arXiv 2106.01254).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from ldl.annotations.agreement import vote_nll
from ldl.annotations.dirichlet import DirichletMultinomial
from ldl.errors import LDLError

DRAWS = 1000
"""Bootstrap samples of an interval."""

MOST = 30
"""Default limit of the raters to compare a model with; more raters change little and take long to compute."""

CHUNK = 1 << 24
"""Largest number of bootstrap counts in memory at a time."""


@dataclass(frozen=True)
class RaterEquivalence:
    """Worth of a model in annotators, on items that all have more than K votes.

    Attributes:
        curve: (K + 1,) expected NLL of a vote that k = 0..K other votes predict.
        with_model: (K + 1,) the curve with the model's prediction as the mean of the prior; None without a validation
            set.
        nll: Expected NLL of a vote that the model predicts.
        worth: Number of raters whose prediction is as good as the model's, from 0 to K; infinity if K raters are worse.
        interval: Lower and upper end of ``worth`` by bootstrap.
        level: Level of the interval.
        items: Number of items.
    """

    curve: np.ndarray
    with_model: np.ndarray | None
    nll: float
    worth: float
    interval: tuple[float, float]
    level: float
    items: int


def most_raters(counts: np.ndarray) -> int:
    """Return the largest k up to :data:`MOST` for which at least half of the items with two votes have over k votes.

    Raises:
        LDLError: No item has two votes.
    """
    votes = counts.sum(1)
    if not (several := votes[votes > 1]).size:
        raise LDLError(f"none of {len(counts)} items has two votes, so no vote predicts another; add votes")
    return min(int(np.sort(several)[(len(several) - 1) // 2]) - 1, MOST)


def held_out_nll(counts: np.ndarray, prior: DirichletMultinomial, raters: int) -> np.ndarray:
    """Return the exact expected NLL of one vote that k others on the same item predict, (N, ``raters`` + 1).

    The held-out vote is a random vote of the item, and the others are drawn from its remaining votes without
    replacement, so the number of their votes for the held-out label has a hypergeometric distribution.

    Args:
        counts: (N, C) votes, whole numbers; every item has more than ``raters``.
        prior: The Dirichlet prior of all items or of each item.
        raters: Largest k.

    Raises:
        LDLError: Counts that are not whole, or an item with too few votes.
    """
    votes = counts.sum(1)
    if (counts != np.round(counts)).any():
        raise LDLError("a power curve needs whole votes, and some counts are fractional; pass votes instead of shares")
    if len(counts) and votes.min() <= raters:
        raise LDLError(
            f"{raters} raters predict a vote on items with {raters + 1} votes, and an item has {votes.min():g}"
        )
    item, label = np.nonzero(counts)
    own, others = counts[item, label].astype(np.int64) - 1, votes[item].astype(np.int64) - 1
    alpha = np.broadcast_to(prior.alpha, counts.shape)
    start, total = alpha[item, label], alpha.sum(1)[item]
    log_choose = _LogChoose(int(votes.max(initial=0)))
    nll = np.zeros((len(counts), raters + 1))
    for k in range(raters + 1):
        expected = np.zeros(len(item))
        for same in range(k + 1):
            logs = log_choose(own, same) + log_choose(others - own, k - same) - log_choose(others, k)
            expected -= np.exp(logs) * np.log((start + same) / (total + k))
        np.add.at(nll[:, k], item, counts[item, label] / votes[item] * expected)
    return nll


class _LogChoose:
    """Logarithms of binomial coefficients of whole numbers; minus infinity for coefficients of 0."""

    def __init__(self, most: int) -> None:
        self.factorials = gammaln(np.arange(most + 2) + 1.0)

    def __call__(self, whole: np.ndarray, part: int) -> np.ndarray:
        possible = (part >= 0) & (whole >= part)
        rest = np.where(possible, whole - part, 0)
        found = self.factorials[whole.clip(0)] - self.factorials[max(part, 0)] - self.factorials[rest]
        return np.where(possible, found, -np.inf)


def rater_equivalence(
    prediction: np.ndarray,
    counts: np.ndarray,
    prior: DirichletMultinomial,
    *,
    around: DirichletMultinomial | None = None,
    groups: np.ndarray | None = None,
    raters: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> RaterEquivalence:
    """Compare a model with annotators, on held-out votes of the items that have enough of them.

    Args:
        prediction: (N, C) predictions of the model, rows on the simplex.
        counts: (N, C) votes, whole numbers.
        prior: The prior of all items or of each item, fitted to the training set.
        around: Priors around the predictions (:meth:`DirichletMultinomial.around`), with a concentration fitted to the
            validation set, for the curve of model and raters; None leaves it out.
        groups: (N,) of any type; the bootstrap draws whole groups. None draws items.
        raters: Largest k; None uses :func:`most_raters`.
        level: Level of the interval.
        seed: Seed of the bootstrap.

    Raises:
        LDLError: No item has two votes, counts that are not whole, no item with more than ``raters`` votes, or
            predictions that are not finite.
    """
    if not np.isfinite(prediction).all():
        raise LDLError(
            "predictions must be finite to compare a model with raters; train the model with another learning rate"
        )
    raters = most_raters(counts) if raters is None else raters
    kept = counts.sum(1) > raters
    if not kept.any():
        raise LDLError(f"no item has more than {raters} votes; give fewer raters, or more votes")
    held, with_model = held_out_nll(counts[kept], _select(prior, counts.shape, kept), raters), None
    if around is not None:
        with_model = held_out_nll(counts[kept], _select(around, counts.shape, kept), raters).mean(0)
    model = vote_nll(prediction[kept], counts[kept])
    unit = np.arange(len(model)) if groups is None else np.unique(groups[kept], return_inverse=True)[1]
    worths = _bootstrap(np.column_stack([held, model]), unit, np.random.default_rng(seed))
    ends = np.quantile(worths, (1 - level) / 2, method="lower"), np.quantile(worths, (1 + level) / 2, method="higher")
    curve, nll = held.mean(0), float(model.mean())
    interval = (float(ends[0]), float(ends[1]))
    return RaterEquivalence(curve, with_model, nll, worth(curve, nll), interval, level, len(model))


def _select(prior: DirichletMultinomial, shape: tuple[int, ...], kept: np.ndarray) -> DirichletMultinomial:
    """Return the priors of the items to keep, of counts of this shape."""
    return DirichletMultinomial(np.broadcast_to(prior.alpha, shape)[kept])


def worth(curve: np.ndarray, nll: float) -> float:
    """Return the number of raters, by linear interpolation, at which a power curve (K + 1,) reaches ``nll``.

    Returns:
        0 if ``nll`` is not better than without raters, infinity if it is better than with K raters.
    """
    return float(_worths(curve[None], np.array([nll]))[0])


def _worths(curves: np.ndarray, nll: np.ndarray) -> np.ndarray:
    """Return the worth (B,) of results (B,) on power curves (B, K + 1)."""
    # A curve may rise where few items determine it: more raters are never worth less.
    curves = np.minimum.accumulate(curves, 1)
    reached = curves <= nll[:, None]
    first = reached.argmax(1)
    rows = np.arange(len(nll))
    before, at = curves[rows, np.maximum(first - 1, 0)], curves[rows, first]
    share = (before - nll) / np.where(before > at, before - at, 1.0)
    return np.where(first == 0, 0.0, first - 1 + share) + np.where(reached.any(1), 0.0, np.inf)


def _bootstrap(results: np.ndarray, unit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the worth (DRAWS,) for resampled units; the last column of ``results`` (N, K + 2) is the model's."""
    units = int(unit.max()) + 1
    sums = np.zeros((units, results.shape[1]))
    np.add.at(sums, unit, results)
    sizes = np.bincount(unit)
    each = max(1, CHUNK // units)
    found = []
    for start in range(0, DRAWS, each):
        drawn = rng.multinomial(units, np.full(units, 1 / units), size=min(each, DRAWS - start))
        means = drawn @ sums / (drawn @ sizes)[:, None]
        found.append(_worths(means[:, :-1], means[:, -1]))
    return np.concatenate(found)
