"""Power curves: the expected negative log-likelihood (NLL) of a vote on an item that k other votes on it predict."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ldl.annotations.checks import as_predictions, as_votes
from ldl.annotations.dirichlet import DirichletMultinomial
from ldl.annotations.mixture import DirichletMixture, Posterior
from ldl.errors import LDLError
from ldl.labels import KL_FLOOR

EXACT_VOTES, EXACT_SETS = 3, 1000
"""Largest k of exact sums over all sets of k votes, and most such sets; beyond either, sets are drawn."""

DRAWS, LEAST_DRAWS, MOST_DRAWS = 50_000, 8, 256
"""Draws over all items together, and fewest and most draws for an item."""

DRAWN_COUNTS = 1 << 22
"""Largest number of drawn votes times labels in memory at a time."""

Combiner = DirichletMultinomial | DirichletMixture
"""What predicts a vote from others on the same item."""


class PowerCurves(NamedTuple):
    """The power curves of N items, for k = 0..K other votes; NaN where an item has k votes or fewer.

    Attributes:
        nll: (N, K + 1) expected NLL of one vote, over the votes and the choices of the others.
        variance: (N, K + 1) variance of ``nll`` from drawing the others; 0 for exact sums.

    Examples:
        >>> import numpy as np
        >>> from ldl.annotations import DirichletMultinomial, measure_power
        >>> counts = np.array([[3, 0], [2, 1], [0, 3]])
        >>> curves = measure_power(counts, DirichletMultinomial(np.array([1.0, 1.0])), raters=2)
        >>> curves.mean().round(2)
        array([0.69, 0.56, 0.5 ])
    """

    nll: np.ndarray
    variance: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the curve over items, (K + 1,)."""
        return np.asarray(self.nll.mean(0))

    def error(self) -> np.ndarray:
        """Return the standard error of the curve from drawing votes, (K + 1,); 0 where sums are exact."""
        return np.asarray(np.sqrt(self.variance.sum(0)) / len(self.variance))

    def select(self, rows: np.ndarray, raters: int) -> PowerCurves:
        """Return the curves of some items up to k = ``raters``."""
        return PowerCurves(self.nll[rows, : raters + 1], self.variance[rows, : raters + 1])


def measure_power(
    counts: np.ndarray,
    combiner: Combiner,
    raters: int,
    prediction: np.ndarray | None = None,
    model_votes: float = 0.0,
) -> PowerCurves:
    """Return the power curves of items.

    One Dirichlet gives exact sums. A mixture gives exact sums up to k = 3 if there are at most 1,000 sets of k votes,
    and else means over a fixed number of seeded draws, with their variance.

    Args:
        counts: (N, C) votes, whole numbers.
        combiner: One Dirichlet or a mixture, fitted to other items.
        raters: Largest k, K.
        prediction: (N, C) predictions of a model that combine with the k votes; None for votes alone.
        model_votes: Number s of votes that a prediction counts as (:meth:`DirichletMixture.model_votes`).

    Raises:
        LDLError: Votes that are negative, not finite or not whole, or of other labels than the combiner's; predictions
            that are no distributions; negative ``model_votes``.
    """
    counts = whole_votes(counts)
    alphas = combiner.alphas if isinstance(combiner, DirichletMixture) else combiner.alpha
    if alphas.shape[-1] != counts.shape[1]:
        raise LDLError(
            f"the combiner has {alphas.shape[-1]} labels and the votes have {counts.shape[1]}; fit it to votes for the "
            "same labels"
        )
    if prediction is not None:
        prediction = as_predictions(prediction, counts.shape)
    if not 0 <= model_votes < np.inf:
        raise LDLError(f"model_votes must be a finite number from 0, and is {model_votes}; fit it to validation items")
    if not isinstance(combiner, DirichletMixture) or combiner.size == 1:
        prior = np.broadcast_to(alphas.reshape(-1, counts.shape[1]), counts.shape)
        if prediction is not None:
            prior = np.maximum(prediction, KL_FLOOR) * (prior.sum(1, keepdims=True) + model_votes)
        nll = _of_one(counts, prior, raters)
        return PowerCurves(nll, np.where(np.isnan(nll), np.nan, 0.0))
    common = prediction is None
    start = Posterior(combiner, prediction, model_votes)
    nll, variance = np.full((2, len(counts), raters + 1), np.nan)
    exact = max(k for k in range(EXACT_VOTES + 1) if comb(counts.shape[1] + k - 1, k) <= EXACT_SETS or k <= 1)
    for k in range(min(exact, raters) + 1):
        rows = np.flatnonzero(counts.sum(1) > k)
        nll[rows, k], variance[rows, k] = _over_sets(counts[rows], start if common else start[rows], k), 0.0
    rows = np.flatnonzero(counts.sum(1) > exact + 1)
    if raters > exact and len(rows):
        draws, rng = int(np.clip(DRAWS // len(rows), LEAST_DRAWS, MOST_DRAWS)), np.random.default_rng(0)
        each = max(1, DRAWN_COUNTS // (draws * max(counts.shape[1], combiner.size)))
        for batch in np.split(rows, range(each, len(rows), each)):
            drawn = np.repeat(batch, draws)
            state = start[np.zeros(len(drawn), int) if common else drawn]
            drawn_nll = _over_draws(counts[drawn], state, raters, rng).reshape(len(batch), draws, -1)[:, :, exact + 1 :]
            nll[batch, exact + 1 :] = drawn_nll.mean(1)
            variance[batch, exact + 1 :] = drawn_nll.var(1, ddof=1) / draws
    return PowerCurves(nll, variance)


def held_out_nll(counts: np.ndarray, combiner: Combiner, raters: int) -> np.ndarray:
    """Return the expected NLL of one vote that k others on the same item predict, (N, ``raters`` + 1).

    It is that of :func:`measure_power`, for items that all have more than ``raters`` votes.

    Raises:
        LDLError: Votes as in :func:`measure_power`, or an item with too few votes.
    """
    votes = whole_votes(counts).sum(1)
    if len(votes) and votes.min() <= raters:
        raise LDLError(
            f"{raters} raters predict a vote on items with {raters + 1} votes, and an item has {votes.min():g}"
        )
    return measure_power(counts, combiner, raters).nll


def whole_votes(counts: np.ndarray) -> np.ndarray:
    """Return votes (N, C) as float64. Raises LDLError unless they are whole, at least 0, and on every item."""
    counts = as_votes(counts)
    if (counts != np.round(counts)).any():
        raise LDLError("a power curve needs whole votes, and some counts are fractional; pass votes instead of shares")
    return counts


def _over_sets(counts: np.ndarray, start: Posterior, k: int) -> np.ndarray:
    """Return the exact expected NLL (N,) over all sets of k votes of each item; ``start`` has one row or N."""
    votes, nll = counts.sum(1), np.zeros(len(counts))
    for labels, times in _sets(counts.shape[1], k):
        rows = np.flatnonzero((counts[:, labels] >= times).all(1))
        if not len(rows):
            continue
        state = start[np.zeros(1, int)] if len(start.counts) == 1 else start[rows]
        rest, chance = counts[rows], np.ones(len(rows))
        drawn = 0
        for label, number in zip(labels, times):
            for already in range(number):
                # The hypergeometric probability is built up vote by vote; the sets have no order.
                chance *= (counts[rows, label] - already) / (already + 1) * (drawn + 1) / (votes[rows] - drawn)
                state.add(np.full(len(state.counts), label))
                drawn += 1
        rest[:, labels] -= times
        nll[rows] -= chance * (rest * np.log(state.mean())).sum(1) / (votes[rows] - k)
    return nll


def _sets(labels: int, k: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield all sets of k votes as their distinct labels and the votes for each."""
    for votes in combinations_with_replacement(range(labels), k):
        distinct = sorted(set(votes))
        yield distinct, [votes.count(label) for label in distinct]


def _over_draws(counts: np.ndarray, state: Posterior, raters: int, rng: np.random.Generator) -> np.ndarray:
    """Return the expected NLL (M, K + 1) of a vote in the rest, while votes are drawn one after another."""
    rest, left = counts.copy(), counts.sum(1)
    nll, rows = np.full((len(counts), raters + 1), np.nan), np.arange(len(counts))
    for k in range(raters + 1):
        has = left > 0
        nll[has, k] = -(rest[has] * np.log(state.mean()[has])).sum(1) / left[has]
        if k == raters:
            break
        label = (rest.cumsum(1) <= (rng.random(len(rest)) * left)[:, None]).sum(1).clip(max=rest.shape[1] - 1)
        state.add(label)
        rest[rows, label] -= has
        left = np.maximum(left - 1, 0)
    return nll


def _of_one(counts: np.ndarray, alphas: np.ndarray, raters: int) -> np.ndarray:
    """Return the exact curves (N, K + 1) under one Dirichlet prior (N, C) of each item.

    The number of other votes for the held-out label has a hypergeometric distribution, and no other label counts.
    """
    votes = counts.sum(1)
    item, label = np.nonzero(counts)
    alike, others = counts[item, label].astype(np.int64) - 1, votes[item].astype(np.int64) - 1
    share, start, total = counts[item, label] / votes[item], alphas[item, label], alphas.sum(1)[item]
    log_choose = _LogChoose(int(votes.max(initial=0)))
    nll = np.full((len(counts), raters + 1), np.nan)
    for k in range(raters + 1):
        expected = np.zeros(len(item))
        rows = np.flatnonzero(others >= k)
        for same in range(k + 1):
            logs = log_choose(alike[rows], same) + log_choose((others - alike)[rows], k - same)
            chance = np.exp(logs - log_choose(others[rows], k))
            expected[rows] -= chance * np.log((start[rows] + same) / (total[rows] + k))
        sums = np.bincount(item, share * expected, len(counts))
        nll[votes > k, k] = sums[votes > k]
    return nll


class _LogChoose:
    """Logarithms of binomial coefficients of whole numbers; minus infinity for coefficients of 0."""

    def __init__(self, most: int) -> None:
        self.factorials = gammaln(np.arange(most + 2) + 1.0)

    def __call__(self, whole: np.ndarray, chosen: int) -> np.ndarray:
        possible = (chosen >= 0) & (whole >= chosen)
        rest = np.where(possible, whole - chosen, 0)
        logs = self.factorials[whole.clip(0)] - self.factorials[max(chosen, 0)] - self.factorials[rest]
        return np.where(possible, logs, -np.inf)
