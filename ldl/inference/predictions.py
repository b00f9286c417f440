"""Predictions of a model: distributions, values, intervals and sets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, predicted_set
from ldl.methods.conformal.scores import check_level


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of N instances.

    Attributes:
        distribution: (N, C) float32, on the simplex; of models that predict at every pixel (N, H, W, C).
        value: (N,) float32, on a grid of labels (N, 2), in ``labels.unit``: by the task's decoder, or the head's own
            point estimate. None for labels without values. At every pixel (N, H, W) or (N, H, W, 2).
        labels: The label space.
        names: Name of each instance, such as its file; None without names.
        calibration: Calibration of intervals and sets on validation rows; None without calibration, and for
            predictions of single raters, since it is of the population's votes.
        facts: Further columns (N,) by name. Detected faces have ``picture``, the number of the image from 0; ``face``,
            from 1, from left to right in each image; ``x0, y0, x1, y1``, the box in pixels of the rotated image; and
            ``confidence`` of the detector. Predictions of raters have ``rater``, the name.

    Examples:
        >>> import numpy as np
        >>> from ldl import LabelSpace
        >>> from ldl.inference import Predictions
        >>> labels = LabelSpace.ordinal([1, 2, 3], "stars")
        >>> predictions = Predictions(np.array([[0.1, 0.2, 0.7]], np.float32), np.array([2.6], np.float32), labels)
        >>> predictions.interval(0.8)
        array([[1., 3.]], dtype=float32)
    """

    distribution: np.ndarray
    value: np.ndarray | None
    labels: LabelSpace
    names: list[str] | None = None
    calibration: Conformal | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.distribution)

    @property
    def std(self) -> np.ndarray | None:
        """Standard deviation of each distribution, in the shape of ``value``; None without values."""
        if self.value is None:
            return None
        return self.labels.deviation(self._exact).float().numpy()

    def interval(self, level: float = 0.9, calibrated: bool | None = None) -> np.ndarray:
        """Return the central interval of each distribution, calibrated if the checkpoint has a calibration.

        A calibrated interval holds the true value of at least ``level`` of all rows exchangeable with the validation
        rows; see ``ldl.methods.conformal.Conformal``. Other intervals hold ``level`` of the predicted mass. Their ends
        are the lowest labels with at least (1 - level) / 2 and (1 + level) / 2 of the mass at or below them. On a grid,
        each axis has the interval of its marginal.

        Args:
            level: Share of the rows, or of the mass, above 0 and below 1.
            calibrated: Whether to calibrate; None calibrates if possible.

        Returns:
            (N, 2), on a grid (N, 2, 2): lower and upper end on the last dimension, in ``labels.unit``.

        Raises:
            LDLError: The labels have no values, the level is out of range, or there is no calibration.
        """
        check_level(level)
        if (calibration := self._calibration(calibrated)) is not None:
            return calibration.interval(self.distribution, level).astype(np.float32)
        tail = (1 - level) / 2
        ends = [self.labels.quantile(self._exact, probability) for probability in (tail, 1 - tail)]
        return torch.stack(ends, -1).float().numpy()

    def label_set(self, level: float = 0.9, calibrated: bool | None = None) -> np.ndarray:
        """Return sets of the likeliest labels, at least one label each, for labels without values.

        A calibrated set holds at least ``level`` of the true mass, on average over rows exchangeable with the
        validation rows. Any other set has the fewest labels with ``level`` of the predicted mass.

        Args:
            level: Share of the mass, above 0 and below 1.
            calibrated: Whether to calibrate; None calibrates if possible.

        Returns:
            (N, C) bool: the labels of each set.

        Raises:
            LDLError: The labels have values, the level is out of range, or there is no calibration.
        """
        if (calibration := self._calibration(calibrated)) is not None:
            return calibration.label_set(self.distribution, level)
        return predicted_set(self.labels, self.distribution, level)

    def _calibration(self, wanted: bool | None) -> Conformal | None:
        if wanted and self.calibration is None:
            raise LDLError(
                "these predictions have no calibration; train with a validation set (data.val_fraction), and predict "
                "the population where single raters are predicted"
            )
        return None if wanted is False else self.calibration

    @property
    def _exact(self) -> torch.Tensor:
        # Sums over many labels lose digits in float32.
        return torch.from_numpy(self.distribution).double()
