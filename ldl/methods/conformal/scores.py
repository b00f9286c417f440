"""Conformal scores of values and labels, their calibrated thresholds, and the intervals and sets below a threshold.

Values: the probability of each label is spread evenly from halfway to the label below up to halfway to the label above;
the first and the last label extend as far outwards as inwards. So the distribution function F is continuous. Arrays are
numpy: ``prediction`` (N, C), ``axis`` (C,) rising values of the labels. All computations are in float64.

Labels without an order: adaptive prediction sets, APS (Romano, Sesia & Candes, "Classification with valid and adaptive
coverage", NeurIPS 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal.units import mean_rank_scores, units_of, weights_of
from ldl.moved import old_names
from ldl.validation.checkpoint import MAX_SCORES

__getattr__ = old_names(__name__)


@dataclass(frozen=True)
class Scores:
    """Scores of the truth in calibration rows, which must be exchangeable with later rows.

    The exchangeable units are rows, or groups such as subjects. The scores of groups of equal weight are those of
    :func:`.units.mean_rank_scores`. The rows of another group, and the labels of a row, share the weight of the unit.

    Attributes:
        score: (M,) rising.
        weight: (M,) above 0; they sum to ``units``.
        units: Number of rows or groups, at least 1.
    """

    score: np.ndarray
    weight: np.ndarray
    units: int

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        mass: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> Scores:
        """Collect the scores of calibration rows; more than 10,000 are joined to runs, each with its highest score.

        Args:
            scores: (N,) of the true value, or (N, C) of every label.
            mass: (N, C) true distributions, the weights of the labels of a row; None with scores (N,).
            groups: (N,) of any type; None for exchangeable rows.
            weight: (N,) weights of the rows, which are scaled so that they sum to the number of units.

        Raises:
            LDLError: No rows, a score that is not finite, or groups of another length.
        """
        if not len(scores) or not np.isfinite(scores).all():
            raise LDLError(f"calibration needs at least one row and finite scores, got {len(scores)} rows")
        unit, size = units_of(len(scores), groups)
        rows = weights_of(unit, size, weight)
        if mass is not None:
            mass = np.asarray(mass, dtype=np.float64)
            rows = rows[:, None] * mass / mass.sum(1, keepdims=True)
            unit = np.broadcast_to(unit[:, None], rows.shape)
        counts = rows > 0
        score, weight, unit = scores[counts].astype(np.float64), rows[counts], unit[counts]
        if groups is not None and len(score) > len(size) and np.allclose(np.bincount(unit, weight), 1):
            score = mean_rank_scores(score, weight, unit)
            weight = np.full(len(score), len(size) / len(score))
        order = np.argsort(score, kind="stable")
        return cls(*_thin(score[order], weight[order]), len(size))

    def threshold(self, level: float) -> float:
        """Return the least score that the next truth does not exceed with a probability of at least ``level``.

        It is the least t with W(t) + 1 <= (1 - level) (units + 1), where W(t) is the weight of the scores above t. For
        rows, this is the score of rank ceil(level (n + 1)), which is exact (Vovk et al. 2005; Lei et al., JASA 2018).
        With true distributions, conformal risk control bounds the mean share of their mass that a set misses
        (Angelopoulos et al., ICLR 2024). With groups of unequal weights, it is hierarchical conformal prediction (Lee,
        Barber & Willett 2023) for a random row of a new group.

        Returns:
            A score; infinity with fewer than level / (1 - level) units.

        Raises:
            LDLError: A level that is not between 0 and 1.
        """
        check_level(level)
        above = self.weight.sum() - self.weight.cumsum()
        enough = above + 1 <= (1 - level) * (self.units + 1) + 1e-9 * self.units
        return float(self.score[enough.argmax()]) if enough.any() else np.inf


def check_level(level: float) -> None:
    """Raise LDLError unless the level is one number between 0 and 1."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise LDLError(f"level {str(level)[:80]} must be above 0 and below 1, such as 0.9; give one number")


def _thin(score: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Join scores to at most ``MAX_SCORES`` steps of about equal weight, each raised, so that sets never shrink."""
    if len(score) <= MAX_SCORES:
        return score, weight
    step = np.ceil(weight.cumsum() / weight.sum() * MAX_SCORES - 1e-6).clip(1, MAX_SCORES)
    starts = np.flatnonzero(np.diff(step, prepend=0))
    return score[np.append(starts[1:], len(score)) - 1], np.add.reduceat(weight, starts)


def marginals(labels: LabelSpace, prediction: np.ndarray) -> list[np.ndarray]:
    """Return the distribution along each axis, (N, length of the axis), of distributions (N, C).

    Raises:
        LDLError: Nominal labels.
    """
    if not labels.has_values:
        raise LDLError("intervals need labels with values, and these are nominal; take label_set")
    shape = tuple(map(len, labels.axes))
    prediction = np.asarray(prediction)
    if labels.cells is not None:
        whole = np.zeros((len(prediction), math.prod(shape)), prediction.dtype)
        whole[:, list(labels.cells)] = prediction
        prediction = whole
    table = prediction.reshape(len(prediction), *shape)
    return [table.sum(tuple(1 + axis for axis in range(labels.ndim) if axis != kept)) for kept in range(labels.ndim)]


LEAST_PROBABILITY = 1e-9
"""Probability below which a label counts as 0: in single precision, tails would never end."""
HAIR = 1e-6
"""Added to a level, so that rounding does not exclude a value at the end of an interval."""


def line_scores(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return the level of the smallest central interval of the predicted distribution that contains the value.

    It is |2 F(y) - 1|, as in distributional conformal prediction (Chernozhukov, Wuthrich & Zhu, PNAS 2021). To avoid
    ties at F = 0 and 1, a value beyond all predicted mass has 1 plus its distance from the mass as a share of the range
    of the labels.

    Args:
        prediction: (N, C), rows of any positive sum.
        value: (N,).
        axis: (C,).

    Returns:
        (N,), at least 0.
    """
    p, edges = _spread(prediction, axis)
    value = np.asarray(value, dtype=np.float64)
    low, high = _tail(p, edges, value), _tail(p[:, ::-1], -edges[::-1], -value)
    start, end = _start(p, edges), -_start(p[:, ::-1], -edges[::-1])
    beyond = np.maximum(np.maximum(start - value, value - end), 0.0)
    return 1 - 2 * np.minimum(low, high).clip(0, 0.5) + beyond / _range(axis)


def line_intervals(prediction: np.ndarray, axis: np.ndarray, score: float | np.ndarray) -> np.ndarray:
    """Return the interval of all values with at most the given score: the central one of this level, or a wider one.

    Args:
        prediction: (N, C), rows of any positive sum.
        axis: (C,).
        score: A number or (M,) numbers, at least 0; may be infinite.

    Returns:
        Lower and upper ends within the range of the labels, (N, 2), or (N, M, 2) for several scores.
    """
    p, edges = _spread(prediction, axis)
    scores = np.atleast_1d(np.asarray(score, dtype=np.float64)) + HAIR
    tail = np.maximum((1 - scores) / 2, 0.0)
    more = np.maximum(scores - 1, 0.0) * _range(axis)
    lower = _quantiles(p, edges, tail) - more
    upper = more - _quantiles(p[:, ::-1], -edges[::-1], tail)
    ends = np.stack([lower, upper], -1).clip(axis[0], axis[-1])
    return ends if np.ndim(score) else ends[:, 0]


def _spread(prediction: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities (N, C) that sum to 1, and the ends (C + 1,) of the intervals of the labels."""
    p = np.asarray(prediction, dtype=np.float64)
    p = p / p.sum(1, keepdims=True)
    p = np.where(p < LEAST_PROBABILITY, 0.0, p)
    axis = np.asarray(axis, dtype=np.float64)
    middles = (axis[1:] + axis[:-1]) / 2
    first, last = (2 * axis[0] - middles[0], 2 * axis[-1] - middles[-1]) if len(middles) else axis + [-0.5, 0.5]
    return p / p.sum(1, keepdims=True), np.concatenate([[first], middles, [last]])


def _range(axis: np.ndarray) -> float:
    return float(axis[-1] - axis[0]) or 1.0


def _start(p: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the lower end of the mass, (N,)."""
    return edges[(p > 0).argmax(1)]


def _tail(p: np.ndarray, edges: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return F(value), (N,)."""
    cell = (np.searchsorted(edges, value, side="right") - 1).clip(0, p.shape[1] - 1)
    share = ((value - edges[cell]) / np.diff(edges)[cell]).clip(0, 1)
    rows = np.arange(len(p))
    return p.cumsum(1)[rows, cell] - (1 - share) * p[rows, cell]


def _quantiles(p: np.ndarray, edges: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Return the lowest values (N, M) with F of at least ``tail`` (M,), in [0, 1/2]; for 0, the start of the mass."""
    total = p.cumsum(1)
    # A binary search in all rows at once.
    low, high = (np.zeros((len(p), len(tail)), dtype=np.int64) for _ in range(2))
    high += p.shape[1] - 1
    while (low < high).any():
        middle = (low + high) // 2
        short = np.take_along_axis(total, middle, 1) < tail
        low, high = np.where(short, middle + 1, low), np.where(short, high, middle)
    cell = np.maximum(low, (p > 0).argmax(1)[:, None])
    mass = np.take_along_axis(p, cell, 1)
    below = np.take_along_axis(total, cell, 1) - mass
    share = ((tail - below) / np.where(mass > 0, mass, 1.0)).clip(0, 1)
    return edges[cell] + share * np.diff(edges)[cell]


def label_scores(prediction: np.ndarray) -> np.ndarray:
    """Return for every label the probability of all likelier labels, (N, C), of rows (N, C) of any positive sum.

    Labels of equal probability are ranked in their order. APS adds a share of the label's own probability, drawn
    uniformly from [0, 1]. Repeatable sets need a fixed share, and with 0 no set is empty.
    """
    p = np.asarray(prediction, dtype=np.float64)
    p = p / p.sum(1, keepdims=True)
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, 1)
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, ranked.cumsum(1) - ranked, 1)
    return scores


def label_sets(scores: np.ndarray, threshold: float) -> np.ndarray:
    """Return which labels have at most the threshold as score, (N, C) bool; the likeliest is always included."""
    held = scores <= threshold + HAIR
    held[np.arange(len(scores)), scores.argmin(1)] = True
    return held


def predicted_set(labels: LabelSpace, prediction: np.ndarray, level: float) -> np.ndarray:
    """Return the fewest labels with at least ``level`` of the predicted mass, (N, C) bool, for predictions (N, C).

    Raises:
        LDLError: Labels with values, or a level that is not between 0 and 1.
    """
    check_nominal(labels)
    check_level(level)
    return label_sets(label_scores(prediction), level - 2 * HAIR)


def check_nominal(labels: LabelSpace) -> None:
    """Raise LDLError if labels have values."""
    if labels.has_values:
        raise LDLError("sets are for labels without values; take interval")
