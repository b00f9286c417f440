"""The embedded data set: scikit-learn's handwritten digits, turned by a known angle."""

from __future__ import annotations

import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_digits
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.data.loaded import Loaded
from ldl.errors import LDLError
from ldl.labels import LabelSpace, check_count
from ldl.options import option, options


@options
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
    """

    turns: int = option(default=4, least=1, most=100)
    max_angle: float = option(default=120.0, above=0, most=180, what="in degrees")
    step: float = option(default=5.0, above=0, what="in degrees")
    sigma: float = option(default=5.0, above=0, what="in degrees")
    turn_seed: int = option(default=0, least=0)
    batch_size: int = 128
    root = None

    def load(self) -> Loaded:
        """Turn the digits. Raises LDLError for a step that does not divide the largest angle."""
        check_count(2 * self.max_angle / self.step, "widen data.step")
        half = round(self.max_angle / self.step)
        if half < 1 or abs(half * self.step - self.max_angle) > 1e-6:
            raise LDLError(f"RotatedDigits.step {self.step:g} must divide max_angle {self.max_angle:g}")
        labels = LabelSpace.ordinal([self.step * k for k in range(-half, half + 1)], "degrees")
        digits = np.pad(load_digits().images / 16.0, ((0, 0), (2, 2), (2, 2))).repeat(self.turns, axis=0)
        angles = np.random.default_rng(self.turn_seed).uniform(-self.max_angle, self.max_angle, len(digits))
        images = [ndimage.rotate(digit, angle, reshape=False, order=1) for digit, angle in zip(digits, angles)]
        self.images = torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1)
        target = labels.encode(torch.tensor(angles, dtype=torch.float32), self.sigma)
        return Loaded(labels, {"target": target}, angles, np.arange(len(digits)) // self.turns)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The turned digits ``rows``; training adds no augmentation."""
        return self.images[torch.from_numpy(rows)]
