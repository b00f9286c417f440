"""The embedded data set: scikit-learn's handwritten digits, turned by a known angle."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_digits
from torch import Tensor
from torch.utils.data import Dataset

from ldl.data.base import LDLDataModule
from ldl.data.instances import ArrayInstances
from ldl.errors import LDLError
from ldl.labels import LabelSpace


class RotatedDigits(LDLDataModule):
    """The 1,797 real 8x8 digits that scikit-learn ships, each turned by known random angles.

    The label space is the angle in degrees. It is ambiguous by nature: a 0, 1 or 8 turned by 100 degrees looks
    like one turned by -80, and a 6 like a 9 upside down. Images are padded to 12x12 (1 channel, 0 to 1), so
    that turning cuts no corner. The angles are fixed by ``turn_seed``. All turns of one digit are one group
    and stay in one part of a fold.

    Args:
        turns: How many turned copies each digit gives.
        max_angle: Angles are uniform in [-max_angle, max_angle] degrees, at most 180.
        step: Distance between labels, in degrees; it must divide ``max_angle``.
        sigma: Standard deviation of the Gaussian label distributions, in degrees.
        turn_seed: Seed of the angles.
        batch_size: Rows of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        folds: Number of folds, cut by digit.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds.
        val_fraction: Share of the training digits that is kept for validation; 0 trains on all.
    """

    def __init__(
        self,
        turns: int = 4,
        max_angle: float = 120.0,
        step: float = 5.0,
        sigma: float = 5.0,
        turn_seed: int = 0,
        batch_size: int = 128,
        num_workers: int = 0,
        folds: int = 10,
        fold: int = 0,
        fold_seed: int = 0,
        val_fraction: float = 0.1,
    ) -> None:
        super().__init__(batch_size, num_workers, None, folds, fold, fold_seed, val_fraction)
        self.turns = turns
        self.max_angle = max_angle
        self.step = step
        self.sigma = sigma
        self.turn_seed = turn_seed

    def load(self) -> None:
        """Turn the digits. Raises LDLError for turns, angles or steps out of range."""
        if self.turns < 1:
            raise LDLError(f"data.turns {self.turns} must be at least 1")
        if not 0 < self.max_angle <= 180:
            raise LDLError(f"data.max_angle {self.max_angle:g} must be in (0, 180] degrees")
        half = round(self.max_angle / self.step) if self.step > 0 else 0
        if half < 1 or abs(half * self.step - self.max_angle) > 1e-6:
            raise LDLError(f"data.step {self.step:g} must divide max_angle {self.max_angle:g}")
        self.labels = LabelSpace.ordinal([self.step * k for k in range(-half, half + 1)], "degrees")
        digits = np.pad(load_digits().images / 16.0, ((0, 0), (2, 2), (2, 2)))
        angles = np.random.default_rng(self.turn_seed).uniform(
            -self.max_angle, self.max_angle, (len(digits), self.turns)
        )
        images = [
            ndimage.rotate(digit, angle, reshape=False, order=1) for digit, row in zip(digits, angles) for angle in row
        ]
        self.images = torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1)
        self.values = angles.ravel()
        value = torch.tensor(self.values, dtype=torch.float32)
        self.groups = np.repeat(np.arange(len(digits)), self.turns)
        self.targets = self.labels.encode(value, self.sigma)
        self._columns = {
            "target": self.targets,
            "value": value,
            "group": torch.from_numpy(self.groups),
        }
        self.size = len(self.images)
        self.input_shape = tuple(self.images.shape[1:])

    def columns(self) -> dict[str, Tensor]:
        """Target, value (degrees) and group of all turned digits."""
        return self._columns

    def dataset(self, rows: np.ndarray, train: bool) -> Dataset[Any]:
        """The turned digits ``rows``; training adds no augmentation."""
        index = torch.from_numpy(rows)
        columns = {name: column[index] for name, column in {"input": self.images, **self._columns}.items()}
        return ArrayInstances(columns, index)
