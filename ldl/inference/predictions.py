"""What a model says of instances: distributions, and what follows of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from ldl.errors import LDLError
from ldl.labels import LabelSpace


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of N instances.

    Attributes:
        distribution: (N, C) float32, on the simplex; of models that predict at every pixel (N, H, W, C).
        value: (N,) float32, on a grid of labels (N, 2), in ``labels.unit``: by the task's decoder, or the head's own
            point estimate. None for labels without values. At every pixel (N, H, W) or (N, H, W, 2).
        labels: What the labels mean.
        names: What each instance is called, such as its file; None where nothing names them.
        facts: What else is known of each, (N,) by name. Of faces that a detector found: ``picture``, its number among
            those given, from 0; ``face``, from 1, from left to right in each picture; ``x0, y0, x1, y1``, the box in
            pixels of the picture turned upright; ``confidence`` of the detector.
    """

    distribution: np.ndarray
    value: np.ndarray | None
    labels: LabelSpace
    names: list[str] | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.distribution)

    @property
    def std(self) -> np.ndarray | None:
        """Standard deviation of each distribution along the values of the labels, in the shape of ``value``."""
        if self.value is None:
            return None
        return self.labels.deviation(self._exact).float().numpy()

    def interval(self, level: float = 0.9) -> np.ndarray:
        """The central interval of each distribution: at least ``level`` of the mass is in it.

        Its ends are labels: the lowest with at least (1 - level) / 2 of the mass at or below it, and the lowest with
        at least (1 + level) / 2. On a grid it is that of each axis' marginal.

        Args:
            level: Share of the mass, above 0 and below 1.

        Returns:
            (N, 2), on a grid (N, 2, 2): lower and upper end on the last dimension, in ``labels.unit``.

        Raises:
            LDLError: labels without values, or another level.
        """
        if not 0 < level < 1:
            raise LDLError(f"level {level!r} of an interval must be above 0 and below 1, such as 0.9")
        tail = (1 - level) / 2
        ends = [self.labels.quantile(self._exact, probability) for probability in (tail, 1 - tail)]
        return torch.stack(ends, -1).float().numpy()

    @property
    def _exact(self) -> torch.Tensor:
        # Sums over many labels lose digits in float32.
        return torch.from_numpy(self.distribution).double()
