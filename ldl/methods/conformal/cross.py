"""Cross-conformal intervals and sets: every row calibrates with the model of a fold that did not see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal.calibration import true_scores, warn_too_few
from ldl.methods.conformal.scores import (
    check_level,
    check_nominal,
    label_scores,
    line_intervals,
    marginals,
)
from ldl.methods.conformal.units import units_of, weights_of


@dataclass(frozen=True)
class CrossConformal:
    """CV+ (Barber et al., Annals of Statistics 2021; for nested sets Gupta, Kuchibhotla & Ramdas 2022).

    The models of all folds predict. Each calibration row contributes the interval or set that the model of its own fold
    predicts at the score of this row. The ends are quantiles over all rows; a label belongs to the set unless too many
    rows exclude it. For exchangeable rows the coverage is at least 1 - 2 (1 - level), less a term of order sqrt(2 / N),
    and in practice about ``level``.

    With one model that is refitted on all rows, use :meth:`Conformal.fit` on the out-of-fold predictions. Its sets come
    from a slightly better model than its scores, so there is no guarantee.

    Attributes:
        labels: The label space.
        scores: (N,) per axis, or one (N, C) for nominal labels.
        weight: (N,) or (N, C), with the sum ``units``.
        fold: (N,) number of the fold that held out a row, from 0.
        units: Number of rows, or of groups of rows.
    """

    labels: LabelSpace
    scores: tuple[np.ndarray, ...]
    weight: np.ndarray
    fold: np.ndarray
    units: int

    @classmethod
    def fit(
        cls, labels: LabelSpace, prediction: np.ndarray, truth: np.ndarray, fold: np.ndarray,
        groups: np.ndarray | None = None, weight: np.ndarray | None = None,
    ) -> CrossConformal:  # fmt: skip
        """Calibrate on out-of-fold predictions.

        Args:
            labels: The label space.
            prediction: (N, C), each row predicted by a model that did not see it.
            truth: See :meth:`Conformal.fit`.
            fold: (N,) number of this model, from 0.
            groups: (N,), none of them in two folds; None for independent rows.
            weight: See :meth:`Conformal.fit`.

        Raises:
            LDLError: Shapes that do not match, rows that are no distributions, or a group in two folds.
        """
        scores, fold = true_scores(labels, prediction, truth), np.asarray(fold)
        if fold.shape != (len(prediction),) or not len(fold):
            raise LDLError(f"fold {fold.shape} must name a fold of every row, ({len(prediction)},), at least one")
        if fold.dtype.kind not in "iu" or fold.min() < 0:
            raise LDLError(f"fold must number the models from 0, in whole numbers; it begins {fold[:5].tolist()}")
        unit, size = units_of(len(fold), groups)
        if len(np.unique(np.stack([unit, fold]), axis=1).T) > len(size):
            raise LDLError("a group is in two folds; cut folds of whole groups, as GroupKFold does")
        weight = weights_of(unit, size, weight)
        if not labels.has_values:
            mass = np.asarray(truth, dtype=np.float64)
            weight = weight[:, None] * mass / mass.sum(1, keepdims=True)
        return cls(labels, tuple(scores), weight, fold, len(size))

    def interval(self, predictions: np.ndarray, level: float) -> np.ndarray:
        """Return the lower and upper ends (M, 2), or (M, 2 axes, 2) for a grid.

        Args:
            predictions: (folds, M, C), of the models of all folds.
            level: In (0, 1).

        Raises:
            LDLError: Nominal labels, a level that is not between 0 and 1, or a fold without predictions.
        """
        self._check_models(predictions)
        spare = self._spare(level)
        per_axis = zip(*(marginals(self.labels, prediction) for prediction in predictions))
        ends = [
            self._ends(of_folds, np.array(axis), scores, spare)
            for of_folds, axis, scores in zip(per_axis, self.labels.axes, self.scores)
        ]
        return ends[0] if len(ends) == 1 else np.stack(ends, 1)

    def label_set(self, predictions: np.ndarray, level: float) -> np.ndarray:
        """Return which labels belong to the set, (M, C) bool. For the arguments, see :meth:`interval`.

        Raises:
            LDLError: Labels with values, a level that is not between 0 and 1, or a fold without predictions.
        """
        check_nominal(self.labels)
        self._check_models(predictions)
        lower = np.zeros(predictions.shape[1:])
        for number, prediction in enumerate(predictions):
            in_fold = self.fold == number
            score, weight = self.scores[0][in_fold].ravel(), self.weight[in_fold].ravel()
            order = np.argsort(score)
            total = np.concatenate([[0.0], weight[order].cumsum()])
            lower += total[np.searchsorted(score[order], label_scores(prediction) - 1e-6)]
        held = self.units - lower > self._spare(level)
        held[np.arange(len(held)), np.mean(predictions, 0).argmax(1)] = True
        return held

    def _check_models(self, predictions: np.ndarray) -> None:
        if self.fold.max() >= len(predictions):
            raise LDLError(
                f"there are predictions of {len(predictions)} models, and rows of fold {self.fold.max()}; number folds "
                "from 0, and give the predictions of all models"
            )

    def _spare(self, level: float) -> float:
        """Return the weight of the rows that an interval may exclude, below 0 if there are too few rows."""
        check_level(level)
        spare = (1 - level) * (self.units + 1) - 1
        if spare < -1e-9:
            warn_too_few(level, self.units)
        return spare + 1e-9 * self.units

    def _ends(self, of_folds: tuple[np.ndarray, ...], axis: np.ndarray, scores: np.ndarray, spare: float) -> np.ndarray:
        """Return the ends (M, 2) on one axis, from the marginals (M, C) that the model of each fold predicts."""
        if spare < 0:
            return np.broadcast_to(axis[[0, -1]], (len(of_folds[0]), 2)).copy()
        ends = np.empty((len(of_folds[0]), len(scores), 2))
        for number, marginal in enumerate(of_folds):
            in_fold = self.fold == number
            ends[:, in_fold] = line_intervals(marginal, axis, scores[in_fold])
        lower, upper = ends[..., 0], ends[..., 1]
        return np.stack([-_outer(-lower, self.weight, spare), _outer(upper, self.weight, spare)], -1)


def _outer(ends: np.ndarray, weight: np.ndarray, spare: float) -> np.ndarray:
    """Return the least of the upper ends (M, N) that ends of at most ``spare`` in weight exceed, (M,)."""
    order = np.argsort(ends, axis=1)
    above = weight.sum() - weight[order].cumsum(1)
    first = (above <= spare).argmax(1)
    return np.take_along_axis(np.take_along_axis(ends, order, 1), first[:, None], 1)[:, 0]
