"""Split conformal prediction: intervals and label sets from rows that were not used for training."""

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
from ldl.methods.conformal.scores import (
    Scores,
    check_nominal,
    label_scores,
    label_sets,
    line_intervals,
    line_scores,
    marginals,
)
from ldl.metrics.registry import INTERVAL_LEVELS
from ldl.tables.entries import as_array
from ldl.validation.checkpoint import CALIBRATION_KEY, check_calibration
from ldl.validation.tensors import off_simplex


@dataclass(frozen=True)
class Conformal:
    """Calibrated intervals of labels with values, and calibrated sets of nominal labels, for any level.

    The guarantee holds for rows that are exchangeable with the calibration rows, on average over both. An interval of
    level 0.9 contains the true value of at least 90% of such rows; every axis of a grid has its own interval. A set of
    nominal labels contains on average at least 90% of the mass of a true distribution, and so a single true label with
    this probability. With groups, this is so for rows of a new group, near the level instead of guaranteed
    (:func:`.units.mean_rank_scores`).

    Attributes:
        labels: The label space.
        scores: Calibration scores, one entry per axis, or a single entry for nominal labels.
    """

    labels: LabelSpace
    scores: tuple[Scores, ...]

    @classmethod
    def fit(
        cls,
        labels: LabelSpace,
        prediction: np.ndarray,
        truth: np.ndarray,
        groups: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> Conformal:
        """Calibrate on rows that were not used for training, or on out-of-fold predictions (see :mod:`.cross`).

        Args:
            labels: The label space.
            prediction: (N, C) predicted distributions.
            truth: True values (N,), or (N, 2) for a grid; true distributions (N, C) for nominal labels.
            groups: (N,) groups, such as subjects, if later rows belong to new groups; None for independent rows.
            weight: (N,) weights of the rows in the coverage, up to a common factor; None for equal weights.

        Raises:
            LDLError: No rows, shapes that do not match, or rows that are no distributions.
        """
        scores = true_scores(labels, prediction, truth)
        if not labels.has_values:
            return cls(labels, (Scores.of(scores[0], truth, groups, weight),))
        return cls(labels, tuple(Scores.of(column, None, groups, weight) for column in scores))

    @property
    def units(self) -> int:
        """Number of calibration rows, or of their groups."""
        return self.scores[0].units

    def interval(self, prediction: np.ndarray, level: float) -> np.ndarray:
        """Return the lower and upper ends (N, 2), or (N, 2 axes, 2) for a grid, in the unit of the labels.

        With fewer than level / (1 - level) calibration rows or groups, the interval is the whole range, with a warning.

        Raises:
            LDLError: Nominal labels, or a level that is not between 0 and 1.
        """
        per_axis = zip(marginals(self.labels, prediction), self.labels.axes, self.scores)
        ends = [line_intervals(p, np.array(axis), self._threshold(scores, level)) for p, axis, scores in per_axis]
        return ends[0] if len(ends) == 1 else np.stack(ends, 1)

    def label_set(self, prediction: np.ndarray, level: float) -> np.ndarray:
        """Return which labels belong to the set, (N, C) bool, at least one per row.

        With too few calibration rows, every label belongs to the set, with a warning.

        Raises:
            LDLError: Labels with values, or a level that is not between 0 and 1.
        """
        check_nominal(self.labels)
        return label_sets(label_scores(prediction), self._threshold(self.scores[0], level))

    def _threshold(self, scores: Scores, level: float) -> float:
        threshold = scores.threshold(level)
        if threshold == np.inf:
            warn_too_few(level, scores.units)
        return threshold

    def to_state(self) -> list[dict[str, Any]]:
        """Return the tensors and numbers for a checkpoint; :meth:`from_checkpoint` is the inverse."""
        return [
            {"score": torch.from_numpy(scores.score), "weight": torch.from_numpy(scores.weight), "units": scores.units}
            for scores in self.scores
        ]

    @classmethod
    def from_checkpoint(cls, checkpoint: dict[str, Any], labels: LabelSpace) -> Conformal | None:
        """Return the calibration of a checkpoint, or None if it has none. Raises LDLError for another form."""
        if CALIBRATION_KEY not in checkpoint:
            return None
        state = check_calibration(checkpoint[CALIBRATION_KEY], max(labels.ndim, 1))
        return cls(labels, tuple(Scores(*scores) for scores in state))


def true_scores(labels: LabelSpace, prediction: np.ndarray, truth: np.ndarray) -> list[np.ndarray]:
    """Return the scores of the truth, (N,) per axis, or (N, C) for nominal labels. Raises LDLError for bad input."""
    prediction, truth = as_array(prediction), as_array(truth)
    if prediction.ndim != 2 or prediction.shape[1] != len(labels) or len(prediction) != len(truth):
        raise LDLError(
            f"predictions {prediction.shape} and {len(truth)} true rows do not match; they must be (N, {len(labels)}) "
            "and N"
        )
    sums = prediction.sum(1)
    has_mass = (sums > 0) & (sums < np.inf)
    has_negative = (prediction < 0).any(1)
    _raise_for_first("prediction", prediction, np.flatnonzero(~has_mass | has_negative))
    if not labels.has_values:
        if truth.shape != prediction.shape:
            raise LDLError(f"true distributions {truth.shape} must be (N, {len(labels)}), as the labels are nominal")
        _raise_for_first("true distribution", truth, off_simplex(torch.tensor(truth, dtype=torch.float64)).numpy())
        return [label_scores(prediction)]
    values = truth.reshape(len(truth), -1)
    if values.shape[1] != labels.ndim or not np.isfinite(values).all():
        raise LDLError(
            f"true values {truth.shape} must be finite, one a row and axis, of which there are {labels.ndim}"
        )
    axes = zip(marginals(labels, prediction), values.T, labels.axes)
    return [line_scores(marginal, column, np.array(axis)) for marginal, column, axis in axes]


def _raise_for_first(name: str, rows: np.ndarray, wrong: np.ndarray) -> None:
    """Raise LDLError for the first of the ``wrong`` row numbers of ``rows`` (N, C), if there are any."""
    if len(wrong):
        row = rows[wrong[0]]
        raise LDLError(
            f"{name} {wrong[0]} has the sum {row.sum():g} and the least entry {row.min():g}; probabilities are at "
            "least 0 and have the sum 1"
        )


def warn_too_few(level: float, units: int) -> None:
    """Warn that there are too few calibration rows for a level."""
    # 1e-9 absorbs rounding: 0.9 / (1 - 0.9) is slightly above 9.
    warnings.warn(
        f"level {level:g} needs {ceil(level / (1 - level) - 1e-9)} calibration rows or groups, and there are {units}: "
        "all labels are included; use a lower level or a larger validation set",
        stacklevel=4,
    )


def interval_columns(calibration: Conformal, prediction: Tensor) -> dict[str, Tensor]:
    """Return calibrated intervals or sets at 50, 80 and 90%.

    Returns:
        ``interval`` (N, 3, 2), or (N, 3, 2, 2) for a grid; for nominal labels ``set`` (N, 3, C) bool.
    """
    rows = prediction.detach().float().cpu().numpy()
    has_values = calibration.labels.has_values
    predict_regions = calibration.interval if has_values else calibration.label_set
    at_levels = [predict_regions(rows, level / 100) for level in INTERVAL_LEVELS]
    regions = torch.from_numpy(np.stack(at_levels, 1)).to(prediction.device)
    return {"interval": regions.float()} if has_values else {"set": regions}
