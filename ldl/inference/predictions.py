"""What a model says of instances: distributions, and what follows of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, predicted_set


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of N instances.

    Attributes:
        distribution: (N, C) float32, on the simplex; of models that predict at every pixel (N, H, W, C).
        value: (N,) float32, on a grid of labels (N, 2), in ``labels.unit``: by the task's decoder, or the head's own
            point estimate. None for labels without values. At every pixel (N, H, W) or (N, H, W, 2).
        labels: What the labels mean.
        names: What each instance is called, such as its file; None where nothing names them.
        calibration: What validation rows of the training said of intervals and sets; None where nothing did.
        facts: What else is known of each, (N,) by name. Of faces that a detector found: ``picture``, its number among
            those given, from 0; ``face``, from 1, from left to right in each picture; ``x0, y0, x1, y1``, the box in
            pixels of the picture turned upright; ``confidence`` of the detector.
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
        """Standard deviation of each distribution along the values of the labels, in the shape of ``value``."""
        if self.value is None:
            return None
        return self.labels.deviation(self._exact).float().numpy()

    def interval(self, level: float = 0.9, calibrated: bool | None = None) -> np.ndarray:
        """The central interval of each distribution, calibrated where the checkpoint holds calibration.

        Calibrated, it holds the true value of at least ``level`` of all rows like those of validation: see
        ``ldl.methods.conformal.Conformal``. Else it holds ``level`` of the mass, whatever that is worth: its ends are
        labels, the lowest with at least (1 - level) / 2 of the mass at or below it, and the lowest with at least
        (1 + level) / 2. On a grid it is that of each axis' marginal.

        Args:
            level: Share of the rows, or of the mass, above 0 and below 1.
            calibrated: Whether it is; None where it can be.

        Returns:
            (N, 2), on a grid (N, 2, 2): lower and upper end on the last dimension, in ``labels.unit``.

        Raises:
            LDLError: labels without values, another level, or no calibration where it is asked for.
        """
        if not 0 < level < 1:
            raise LDLError(f"level {level!r} of an interval must be above 0 and below 1, such as 0.9")
        if (known := self._calibration(calibrated)) is not None:
            return known.interval(self.distribution, level).astype(np.float32)
        tail = (1 - level) / 2
        ends = [self.labels.quantile(self._exact, probability) for probability in (tail, 1 - tail)]
        return torch.stack(ends, -1).float().numpy()

    def label_set(self, level: float = 0.9, calibrated: bool | None = None) -> np.ndarray:
        """The likeliest labels, as many as it takes, of labels without values; at least one.

        Calibrated, they hold at least ``level`` of the true mass, on average over all rows like those of validation.
        Else they are the fewest with ``level`` of the predicted mass.

        Args:
            level: Share of the mass, above 0 and below 1.
            calibrated: Whether they are; None where they can be.

        Returns:
            (N, C) of bool: the labels of each set.

        Raises:
            LDLError: labels with values, another level, or no calibration where it is asked for.
        """
        if (known := self._calibration(calibrated)) is not None:
            return known.label_set(self.distribution, level)
        return predicted_set(self.labels, self.distribution, level)

    def _calibration(self, wanted: bool | None) -> Conformal | None:
        if wanted and self.calibration is None:
            raise LDLError("nothing calibrates these predictions: train with a validation part (data.val_fraction)")
        return None if wanted is False else self.calibration

    @property
    def _exact(self) -> torch.Tensor:
        # Sums over many labels lose digits in float32.
        return torch.from_numpy(self.distribution).double()
