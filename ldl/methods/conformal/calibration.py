"""Split-conformal intervals and sets of predicted distributions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal.axes import marginals
from ldl.methods.conformal.line import line_intervals, line_scores
from ldl.methods.conformal.scores import Scores
from ldl.methods.conformal.sets import check_nominal, label_scores, label_sets
from ldl.metrics.intervals import INTERVAL_LEVELS
from ldl.trust.calibration import CALIBRATION_KEY, from_numpy, to_numpy
from ldl.trust.learned import off_simplex


@dataclass(frozen=True)
class Conformal:
    """Calibrated intervals of labels with values, and calibrated sets of nominal ones, for any level.

    The guarantee is for rows that are exchangeable with the calibration rows, and on average over both: of rows like
    these, an interval of level 0.9 holds the true value of at least 90%. Of a grid every axis has its own interval. Of
    nominal labels the set holds, on average, at least 90% of the mass of a true distribution, and so with this
    probability the true label where there is one.

    Attributes:
        labels: The label space.
        scores: One of each axis, or one of nominal labels.
    """

    labels: LabelSpace
    scores: tuple[Scores, ...]

    @classmethod
    def fit(
        cls, labels: LabelSpace, prediction: np.ndarray, truth: np.ndarray, groups: np.ndarray | None = None
    ) -> Conformal:
        """Calibrate on rows that trained nothing, or on out-of-fold predictions (see :mod:`.cross`).

        Args:
            labels: The label space.
            prediction: (N, C) predicted distributions.
            truth: True values (N,), (N, 2) of a grid; true distributions (N, C) of nominal labels.
            groups: (N,) such as persons, where later rows are of groups that are new; None where rows stand alone.

        Raises:
            LDLError: no rows, shapes that do not fit, or rows that are no distributions.
        """
        found = true_scores(labels, prediction, truth)
        if not labels.has_values:
            return cls(labels, (Scores.of(found[0], truth, groups),))
        return cls(labels, tuple(Scores.of(column, None, groups) for column in found))

    @property
    def units(self) -> int:
        """Calibration rows, or groups of them."""
        return self.scores[0].units

    def interval(self, prediction: np.ndarray, level: float) -> np.ndarray:
        """Lower and upper ends, (N, 2), of a grid (N, 2 axes, 2), in the labels' unit.

        Where there are fewer calibration rows or groups than level / (1 - level), the whole range, with a warning.
        Raises LDLError: nominal labels, or a level that is not between 0 and 1.
        """
        parts = zip(marginals(self.labels, prediction), self.labels.axes, self.scores)
        ends = [line_intervals(part, np.array(axis), self._threshold(own, level)) for part, axis, own in parts]
        return ends[0] if len(ends) == 1 else np.stack(ends, 1)

    def label_set(self, prediction: np.ndarray, level: float) -> np.ndarray:
        """Which labels belong to the set, (N, C) of bool, at least one a row; all of them with too few rows.

        Raises LDLError: labels with values, or a level that is not between 0 and 1.
        """
        check_nominal(self.labels)
        return label_sets(label_scores(prediction), self._threshold(self.scores[0], level))

    def _threshold(self, scores: Scores, level: float) -> float:
        found = scores.threshold(level)
        if found == np.inf:
            warn_too_few(level, scores.units)
        return found

    def to_state(self) -> list[dict[str, Any]]:
        """What checkpoints keep, tensors and numbers; :meth:`from_checkpoint` is the inverse."""
        return [from_numpy(own.score, own.weight, own.units) for own in self.scores]

    @classmethod
    def from_checkpoint(cls, checkpoint: dict[str, Any], labels: LabelSpace) -> Conformal | None:
        """What a checkpoint keeps of its calibration, None where it has none. Raises LDLError for another form."""
        if CALIBRATION_KEY not in checkpoint:
            return None
        state = to_numpy(checkpoint[CALIBRATION_KEY], max(labels.ndim, 1))
        return cls(labels, tuple(Scores(*own) for own in state))


def true_scores(labels: LabelSpace, prediction: np.ndarray, truth: np.ndarray) -> list[np.ndarray]:
    """The scores of the truth: (N,) of each axis or, of nominal labels, (N, C) of every label. Raises LDLError."""
    prediction, truth = np.asarray(prediction), np.asarray(truth)
    if prediction.ndim != 2 or prediction.shape[1] != len(labels) or len(prediction) != len(truth):
        raise LDLError(
            f"predictions {prediction.shape} and {len(truth)} true rows do not fit; they must be (N, {len(labels)}) "
            "and N"
        )
    sums = prediction.sum(1)
    _refuse("prediction", prediction, np.flatnonzero(~((sums > 0) & (sums < np.inf)) | (prediction < 0).any(1)))
    if not labels.has_values:
        if truth.shape != prediction.shape:
            raise LDLError(f"true distributions {truth.shape} must be (N, {len(labels)}), as the labels are nominal")
        _refuse("true distribution", truth, off_simplex(torch.tensor(truth, dtype=torch.float64)).numpy())
        return [label_scores(prediction)]
    values = truth.reshape(len(truth), -1)
    if values.shape[1] != labels.ndim or not np.isfinite(values).all():
        raise LDLError(
            f"true values {truth.shape} must be finite, one a row and axis, of which there are {labels.ndim}"
        )
    parts = zip(marginals(labels, prediction), values.T, labels.axes)
    return [line_scores(part, column, np.array(axis)) for part, column, axis in parts]


def _refuse(what: str, rows: np.ndarray, wrong: np.ndarray) -> None:
    """Raise LDLError for the first of the rows (N, C) whose numbers are ``wrong``."""
    if len(wrong):
        row = rows[wrong[0]]
        raise LDLError(
            f"{what} {wrong[0]} has the sum {row.sum():g} and the least entry {row.min():g}; probabilities are at "
            "least 0 and have the sum 1"
        )


def warn_too_few(level: float, units: int) -> None:
    """Say that there are too few calibration rows for a level."""
    warnings.warn(
        f"level {level:g} needs {ceil(level / (1 - level) - 1e-9)} calibration rows or groups, and there are {units}: "
        "all labels are given; take a lower level, or a larger validation part",
        stacklevel=4,
    )


def interval_columns(calibration: Conformal | None, prediction: Tensor) -> dict[str, Tensor]:
    """Calibrated intervals or sets at 50, 80 and 90%, none where nothing is calibrated.

    Returns:
        ``interval`` (N, 3, 2), of a grid (N, 3, 2, 2), or of nominal labels ``set`` (N, 3, C) of bool.
    """
    if calibration is None:
        return {}
    rows = prediction.detach().float().cpu().numpy()
    valued = calibration.labels.has_values
    give = calibration.interval if valued else calibration.label_set
    found = torch.from_numpy(np.stack([give(rows, level / 100) for level in INTERVAL_LEVELS], 1)).to(prediction.device)
    return {"interval": found.float()} if valued else {"set": found}
