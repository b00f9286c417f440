"""Images with the votes of annotators at every pixel, whole or as random crops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from ldl.batch import Batch
from ldl.data.edges.crops import Crops
from ldl.data.edges.votes import vote_share
from ldl.data.pictures import read_picture
from ldl.data.sampler import Draw
from ldl.edges.benchmark.ground_truth import GroundTruth, read_ground_truth
from ldl.errors import LDLError


@dataclass(eq=False)
class EdgeImages(Dataset[Batch]):
    """``input`` (3, H, W) uint8 and ``target`` (H, W, 2), the shares of annotators without and with an edge.

    Attributes:
        images: All images of the data set.
        index: (N,) the numbers of those that are served.
        tolerance: See :func:`vote_share`.
        least: Smallest side that an image may have, in pixels.
        crops: Serve random crops, with ``keep`` (side, side): the pixels to learn from. None serves whole images.
        wants: What the annotators drew that is served besides, of whole images: ``boundaries`` and ``segments``,
            (A, H, W) each.
    """

    images: list[Path]
    index: np.ndarray
    tolerance: float
    least: int = 1
    crops: Crops | None = None
    wants: Sequence[str] = ()
    _kept: dict[int, tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, draw: Draw) -> dict[str, Any]:
        picture, share, drawn = self._read(draw.row)
        if self.crops is None:
            more = {name: torch.from_numpy(maps) for name, maps in drawn.items()}
        else:
            rng = np.random.default_rng(draw.seed)
            picture, share, keep = self.crops.take(picture, share, drawn.get("boundaries"), self.tolerance, rng)
            more = {"keep": torch.from_numpy(keep)}
        return {
            "input": torch.from_numpy(np.array(picture)).permute(2, 0, 1),
            "target": torch.from_numpy(np.stack([1 - share, share], -1)),
            "index": torch.tensor(self.index[draw.row]),
            "weight": torch.tensor(draw.weight),
            **more,
        }

    def _read(self, row: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        if row in self._kept:
            return self._kept[row]
        image = self.images[self.index[row]]
        picture, truth = read_scene(image, self.least)
        if truth.segments is None and "segments" in self.wants:
            raise LDLError(f"the ground truth of {image} has no Segmentation, which is learned from; add it there")
        wants = self.wants if self.crops is None else ["boundaries"] * self.crops.wants_lines
        drawn = {name: getattr(truth, name) for name in wants}
        read = picture, vote_share(truth.boundaries, self.tolerance), drawn
        if self.crops is not None:
            self._kept[row] = read
        return read


def read_scene(image: Path, crop: int = 1) -> tuple[np.ndarray, GroundTruth]:
    """An image, (H, W, 3) uint8, and what its annotators drew.

    Raises LDLError: they cannot be read, differ in size, or are too small for crops of ``crop`` pixels.
    """
    picture, truth = read_picture(image), read_ground_truth(truth_of(image))
    size = "x".join(map(str, picture.shape[:2]))
    if picture.shape[:2] != truth.boundaries.shape[1:]:
        drawn = "x".join(map(str, truth.boundaries.shape[1:]))
        raise LDLError(f"{image} and its ground truth differ in size, {size} and {drawn} pixels")
    if min(picture.shape[:2]) < crop:
        raise LDLError(f"{image} has {size} pixels, less than data.crop {crop}; lower it")
    return picture, truth


def truth_of(image: Path) -> Path:
    """The ground truth file of ``.../images/PART/NAME.jpg``: ``.../groundTruth/PART/NAME.mat``."""
    return image.parents[2] / "groundTruth" / image.parent.name / f"{image.stem}.mat"
