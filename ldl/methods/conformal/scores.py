"""What calibration rows tell: below which score the truth lies as often as wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldl.errors import LDLError
from ldl.trust.calibration import MOST_SCORES


@dataclass(frozen=True)
class Scores:
    """Scores of the truth in calibration rows, which are exchangeable with what is predicted later.

    Units are what is exchangeable: rows, or groups such as persons, whose rows then share a weight of 1.

    Attributes:
        score: (M,) rising.
        weight: (M,) above 0; they sum to ``units``.
        units: Number of rows or groups, at least 1.
    """

    score: np.ndarray
    weight: np.ndarray
    units: int

    @classmethod
    def of(cls, scores: np.ndarray, mass: np.ndarray | None = None, groups: np.ndarray | None = None) -> Scores:
        """Collect the scores of calibration rows; more than 10,000 are joined, each run taking its highest.

        Args:
            scores: (N,) of the true value, or (N, C) of every label.
            mass: (N, C) true distributions, which weigh a row's labels; None with scores (N,).
            groups: (N,) of any type; None where rows are exchangeable.

        Raises:
            LDLError: no rows, a score that is not finite, or groups of another length.
        """
        if not len(scores) or not np.isfinite(scores).all():
            raise LDLError(f"calibration needs at least one row and finite scores, got {len(scores)} rows")
        unit, size = units_of(len(scores), groups)
        rows = 1 / size[unit]
        if mass is not None:
            mass = np.asarray(mass, dtype=np.float64)
            rows = rows[:, None] * mass / mass.sum(1, keepdims=True)
        score, weight = scores[rows > 0].astype(np.float64), rows[rows > 0]
        order = np.argsort(score, kind="stable")
        return cls(*_thin(score[order], weight[order]), len(size))

    def threshold(self, level: float) -> float:
        """The least score below or at which the next truth lies with a probability of at least ``level``.

        It is the least t with W(t) + 1 <= (1 - level) (units + 1), where W(t) is the weight of the scores above t: of
        rows the score of rank ceil(level (n + 1)), exact (Vovk et al. 2005; Lei et al., JASA 2018). With true
        distributions the set misses a share of their mass, of which conformal risk control bounds the mean
        (Angelopoulos et al., ICLR 2024). Of groups it is hierarchical conformal prediction (Lee, Barber & Willett
        2023): for a row, drawn at random, of a group that is new.

        Returns:
            A score; infinity where there are too few units, fewer than level / (1 - level).

        Raises:
            LDLError: a level that is not between 0 and 1.
        """
        check_level(level)
        above = self.weight.sum() - self.weight.cumsum()
        enough = above + 1 <= (1 - level) * (self.units + 1) + 1e-9 * self.units
        return float(self.score[enough.argmax()]) if enough.any() else np.inf


def units_of(rows: int, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The unit of every row, (rows,) from 0, and the rows each has. Raises LDLError for groups of another shape."""
    if groups is None:
        return np.arange(rows), np.ones(rows, np.int64)
    if (shape := np.shape(groups)) != (rows,):
        raise LDLError(f"groups {shape} must name a group of every row, ({rows},)")
    _, unit, size = np.unique(groups, return_inverse=True, return_counts=True)
    return unit, size


def check_level(level: float) -> None:
    """Raise LDLError for a level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise LDLError(f"level {level!r} must be above 0 and below 1, such as 0.9")


def _thin(score: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most ``MOST_SCORES`` steps of about equal weight: a step up never makes a set smaller."""
    if len(score) <= MOST_SCORES:
        return score, weight
    step = np.ceil(weight.cumsum() / weight.sum() * MOST_SCORES - 1e-6).clip(1, MOST_SCORES)
    starts = np.flatnonzero(np.diff(step, prepend=0))
    return score[np.append(starts[1:], len(score)) - 1], np.add.reduceat(weight, starts)
