"""Another dense set: ``images/NAME.png``, and ``masks/NAME_*.png`` in which annotators gave every pixel a class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ldl.data.base import LDLDataModule, Loaded
from ldl.data.pictures import list_pictures, read_picture
from ldl.labels import LabelSpace
from ldl.options import options


@options
class SortedPixels(LDLDataModule):
    """Pictures of one size with masks of classes 0, 1, ...; the target is the share of masks at every pixel.

    Args:
        path: Folder with ``images`` and ``masks``.
        classes: Names of the classes, in the order of their numbers.
    """

    path: str = "sorted_pixels"
    classes: Sequence[str] = ("background", "object")

    def load(self) -> Loaded:
        self.files = list_pictures(self.find(self.path) / "images")
        targets = [self.shares(sorted(file.parents[1].glob(f"masks/{file.stem}_*.png"))) for file in self.files]
        labels = LabelSpace.nominal(self.classes)
        return Loaded(labels, {"target": torch.stack(targets)}, names=[file.stem for file in self.files])

    def shares(self, masks: list[Path]) -> Tensor:
        drawn = torch.from_numpy(np.stack([read_picture(mask)[..., 0] for mask in masks]))
        return torch.stack([(drawn == number).float().mean(0) for number in range(len(self.classes))], -1)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        return torch.from_numpy(np.stack([read_picture(self.files[row]) for row in rows])).permute(0, 3, 1, 2)
