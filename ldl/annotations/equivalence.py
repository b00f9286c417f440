"""Rater equivalence, or survey equivalence: how many annotators predict a further vote as well as a model does.

The power curve is the expected negative log-likelihood of one vote, predicted from k other votes on the same item by a
combiner, k = 0, 1, 2, ... A model is worth k raters if the curve reaches the model's negative log-likelihood at k
(Resnick, Kong, Schoenebeck & Weninger 2021, arXiv 2106.01254, who call it survey equivalence). A weak combiner
flatters the model, so the combiner is a mixture of Dirichlet distributions (:mod:`ldl.annotations.mixture`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldl.annotations.agreement import expected_nll
from ldl.annotations.checks import as_predictions, as_votes, check_several
from ldl.annotations.mixture import units_of
from ldl.annotations.power import Combiner, PowerCurves, measure_power, whole_votes
from ldl.errors import LDLError
from ldl.moved import old_names

BOOTSTRAP_SAMPLES = 1000
"""Bootstrap samples of an interval."""

MOST_RATERS = 30
"""Default limit of the raters to compare a model with; more raters change little and take long to compute."""

BOOTSTRAP_COUNTS = 1 << 24
"""Largest number of bootstrap counts in memory at a time."""


@dataclass(frozen=True)
class RaterEquivalence:
    """Worth of a model in annotators (survey equivalence), on items that all have more than K votes.

    Attributes:
        curve: (K + 1,) expected NLL of a vote that k = 0..K other votes predict.
        with_model: (K + 1,) the curve of votes and the model's prediction together; None without ``model_votes``.
        nll: Expected NLL of a vote that the model predicts.
        worth: Number of raters whose prediction is as good as the model's, from 0 to K; infinity if K raters are worse.
        interval: Lower and upper end of ``worth`` by bootstrap.
        level: Level of the interval.
        items: Number of items.
        error: (K + 1,) standard error of ``curve`` from drawing sets of votes; 0 where sums are exact.
        with_model_error: (K + 1,) the same for ``with_model``.

    Examples:
        >>> import numpy as np
        >>> from ldl.annotations import DirichletMultinomial, rater_equivalence
        >>> counts = np.array([[4, 0], [3, 1], [0, 4], [1, 3]])
        >>> model = np.array([[0.6, 0.4], [0.6, 0.4], [0.4, 0.6], [0.4, 0.6]])
        >>> result = rater_equivalence(model, counts, DirichletMultinomial(np.array([1.0, 1.0])))
        >>> print(round(result.worth, 1), "raters, on", result.items, "items")
        1.3 raters, on 4 items
    """

    curve: np.ndarray
    with_model: np.ndarray | None
    nll: float
    worth: float
    interval: tuple[float, float]
    level: float
    items: int
    error: np.ndarray
    with_model_error: np.ndarray | None

    @property
    def raters(self) -> int:
        """The largest number of raters K."""
        return len(self.curve) - 1


def most_raters(counts: np.ndarray) -> int:
    """Return the largest k for which at least half of the items with two votes have over k votes, or ``MOST_RATERS``.

    Raises:
        LDLError: No item has two votes, or votes that are negative, not finite or of another shape.
    """
    votes = check_several(as_votes(counts, empty=True))
    several = votes[votes > 1]
    return min(int(np.sort(several)[(len(several) - 1) // 2]) - 1, MOST_RATERS)


def rater_equivalence(
    prediction: np.ndarray,
    counts: np.ndarray,
    combiner: Combiner,
    *,
    model_votes: float | None = None,
    groups: np.ndarray | None = None,
    raters: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> RaterEquivalence:
    """Compare a model with annotators, on held-out votes of the items that have enough of them.

    Args:
        prediction: (N, C) predictions of the model, rows on the simplex.
        counts: (N, C) votes, whole numbers, at least one on each item.
        combiner: What predicts a vote from others: :meth:`DirichletMixture.fit` of the training set. One Dirichlet
            (:class:`DirichletMultinomial`) is weaker and makes a model look better.
        model_votes: Number of votes that a prediction counts as (:meth:`DirichletMixture.model_votes` of the validation
            set), for the curve of model and raters; None leaves it out.
        groups: (N,) of any type; the bootstrap draws whole groups. None draws items.
        raters: Largest k; None uses :func:`most_raters`.
        level: Level of the interval.
        seed: Seed of the bootstrap.

    Raises:
        LDLError: No item has two votes, or more than ``raters`` votes; votes that are negative, not finite, not whole
            or of another number of labels; predictions that are no distributions, or not one for each item.
    """
    counts = whole_votes(counts)
    prediction = as_predictions(prediction, counts.shape)
    units = units_of(groups, len(counts))
    if raters is not None and (raters != int(raters) or raters < 1):
        raise LDLError(f"raters must be a whole number from 1, not {raters}; leave it out for the usual number")
    if not 0 < level < 1:
        raise LDLError(f"level must lie between 0 and 1, and is {level}; 0.95 gives an interval of 95%")
    raters = most_raters(counts) if raters is None else int(raters)
    rows = items_with_more(counts, raters)
    powers, with_model = measure_power(counts[rows], combiner, raters), None
    if model_votes is not None:
        with_model = measure_power(counts[rows], combiner, raters, prediction[rows], model_votes)
    nll = expected_nll(prediction[rows], counts[rows])
    return compare(nll, powers, with_model, units[rows], level, seed)


def items_with_more(counts: np.ndarray, raters: int) -> np.ndarray:
    """Return the numbers of the items with more than ``raters`` votes. Raises LDLError if there are none."""
    rows = np.flatnonzero(counts.sum(1) > raters)
    if not len(rows):
        raise LDLError(f"no item has more than {raters} votes; give fewer raters, or more votes")
    return rows


def compare(
    nll: np.ndarray,
    powers: PowerCurves,
    with_model: PowerCurves | None = None,
    groups: np.ndarray | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> RaterEquivalence:
    """Compare the NLL (N,) of a model with the power curves of the same items, which all have more than K votes."""
    unit = units_of(groups, len(nll))
    worths = _bootstrap(np.column_stack([powers.nll, nll]), unit, np.random.default_rng(seed))
    ends = np.quantile(worths, (1 - level) / 2, method="lower"), np.quantile(worths, (1 + level) / 2, method="higher")
    curve, mean = powers.mean(), float(nll.mean())
    return RaterEquivalence(
        curve,
        None if with_model is None else with_model.mean(),
        mean,
        worth(curve, mean),
        (float(ends[0]), float(ends[1])),
        level,
        len(nll),
        powers.error(),
        None if with_model is None else with_model.error(),
    )


def worth(curve: np.ndarray, nll: float) -> float:
    """Return the number of raters, by linear interpolation, at which a power curve (K + 1,) reaches ``nll``.

    Returns:
        0 if ``nll`` is not better than without raters, infinity if it is better than with K raters.

    Raises:
        LDLError: A curve or NLL that is not finite, or a curve of another shape.
    """
    points = np.asarray(curve, np.float64)
    if points.ndim != 1 or not points.size or not np.isfinite(points).all() or not np.isfinite(nll):
        raise LDLError(
            f"a worth needs a finite NLL and a power curve (K + 1,) of finite numbers; this NLL is {nll:g} and this "
            f"curve has the shape {points.shape}; correct them"
        )
    return float(_worths(points[None], np.array([nll]))[0])


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
    """Return the worth (B,) in bootstrap samples of units; the last column of ``results`` (N, K + 2) is the model's."""
    units = int(unit.max()) + 1
    sums = np.zeros((units, results.shape[1]))
    np.add.at(sums, unit, results)
    sizes = np.bincount(unit)
    each = max(1, BOOTSTRAP_COUNTS // units)
    worths = []
    for start in range(0, BOOTSTRAP_SAMPLES, each):
        drawn = rng.multinomial(units, np.full(units, 1 / units), size=min(each, BOOTSTRAP_SAMPLES - start))
        means = drawn @ sums / (drawn @ sizes)[:, None]
        worths.append(_worths(means[:, :-1], means[:, -1]))
    return np.concatenate(worths)


__getattr__ = old_names(__name__)
