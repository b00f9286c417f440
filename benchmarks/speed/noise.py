"""Pictures of noise in memory, to measure what loading, sending and learning cost without reading files."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.data.loaded import Loaded
from ldl.labels import LabelSpace
from ldl.options import option, options

BANK = 256
"""Different pictures."""

AUGMENTS = find_spec("albumentations") is not None
"""Whether this machine can augment pictures as training on faces does."""


@options
class Noise(LDLDataModule):
    """Pictures of noise with an age, augmented as faces are where albumentations is installed.

    Args:
        count: Number of pictures.
        side: Height and width of a picture.
    """

    count: int = option(default=2048, least=1)
    side: int = option(default=224, least=8)
    val_fraction: float = 0.0

    def load(self) -> Loaded:
        """Draw some pictures, and ages."""
        rng = np.random.default_rng(0)
        self.pictures = rng.integers(0, 256, (min(self.count, BANK), self.side, self.side, 3), dtype=np.uint8)
        labels = LabelSpace.ordinal(range(101), "years")
        ages = rng.integers(101, size=self.count).astype(float)
        return Loaded(labels, {"target": labels.encode(torch.tensor(ages, dtype=torch.float32), 2.0)}, ages)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The pictures ``rows``, uint8, of a few that come again and again."""
        pixels = self.pictures[rows % len(self.pictures)]
        if train and AUGMENTS:
            from ldl.data.faces.transforms import Pipeline, default_train_transforms

            return Pipeline(default_train_transforms()).batch(list(pixels), seeds)
        return torch.from_numpy(pixels).permute(0, 3, 1, 2)
