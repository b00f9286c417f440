"""BSDS500 (Arbelaez et al. 2011) and edge sets of its layout: at every pixel, how many annotators drew an edge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch.utils.data import DataLoader

from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.data.edges.crops import Crops
from ldl.data.edges.images import EdgeImages, read_scene, truth_of
from ldl.data.edges.votes import Target
from ldl.data.loaded import Loaded
from ldl.data.loader import in_order
from ldl.data.sources import absent
from ldl.edges.benchmark.ground_truth import GroundTruth, read_ground_truth
from ldl.edges.benchmark.nms import SMOOTHING
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.protocols import Fold

Protocol = Literal["development", "final"]

_SUFFIXES = (".jpg", ".png")


@options
class BSDS500(LDLDataModule):
    """Images and ground truth of edges: ``images/PART/NAME.jpg`` and ``groundTruth/PART/NAME.mat``.

    Labels are {no edge, edge}, the target of a pixel how many annotators drew an edge there. Training serves random
    crops; validation and test serve whole images, one a process. Any data set of this layout will do.

    Args:
        path: Folder with ``images`` and ``groundTruth``; None takes ``BSDS500/data`` below the data folder.
        protocol: ``development`` trains on the part ``train`` and tests on ``val``; ``final``, for the figure to
            report, trains on ``train`` and, where there is one, ``val``, and tests on ``test``.
        target: What is learned. ``votes``: the share of annotators, disagreement and all. ``consensus``: edge where at
            least half of them agree, no edge where none drew one, and nothing from pixels between (Xie & Tu 2015).
            ``blended``: the mean of the losses of both. ``sampled``: one annotator at random, another one every time.
        tolerance: An annotator counts for a pixel up to this far from the line that was drawn, in pixels.
        crop: Side of the crops of training, in pixels.
        flips: Mirror crops at random.
        turns: Turn crops by random right angles.
        rotations: Rotate images by a random one of so many equal angles; crops then lie within the rotated image. 1
            rotates none, 16 is usual (Xie & Tu 2015). Lines stay as thin as they were drawn.
        sizes: Resize images by a random factor between these two, by less where a crop would not fit.
        negatives: Pixels without any vote that a crop is learned from, for each one with votes, drawn at random: the
            balance of the classes. None learns from all.
        batch_size: Crops of a global batch, over all processes.
        smoothing: Where non-maxima of test maps are suppressed, the radius of the blur before the direction of an edge
            is estimated, in pixels. The usual 4 is for wide edges; what networks draw is narrow.
    """

    path: str | None = None
    protocol: Protocol = "development"
    target: Target = "votes"
    tolerance: float = option(default=1.0, least=0, most=10, what="pixels")
    crop: int = option(default=192, least=32, most=4096, what="pixels")
    flips: bool = True
    turns: bool = True
    rotations: int = option(default=1, least=1, most=360)
    sizes: Sequence[float] = option(default=(1.0, 1.0), least=0.1, most=10)
    negatives: float | None = option(default=2.0, above=0, null="all pixels")
    batch_size: int = option(default=8, least=1, most=2**31 - 1)
    smoothing: int = option(default=SMOOTHING, least=0, most=100, what="pixels")

    leaky = False
    input_dtype = "uint8"
    folds, fold, fold_seed, val_fraction = 0, 0, 0, 0.0

    @property
    def folder(self) -> Path:
        """The folder with ``images`` and ``groundTruth``."""
        return self.find(self.path) if self.path else self.data_root / "BSDS500" / "data"

    def load(self) -> Loaded:
        """List the images of the protocol's parts. Raises LDLError for missing folders, images or ground truth."""
        if len(self.sizes) != 2 or self.sizes[0] > self.sizes[1]:
            raise LDLError(f"BSDS500.sizes {list(self.sizes)} must be two factors, the smaller first, as [0.7, 1.4]")
        if not (self.folder / "images").is_dir():
            raise absent("BSDS500", self.folder, None if self.path else self.data_root)
        trained, tested = (["train"], "val") if self.protocol == "development" else (["train", "val"], "test")
        if self.protocol == "final" and not (self.folder / "images" / "val").is_dir():
            trained = ["train"]
        parts = {part: list_part(self.folder, part) for part in [*trained, tested]}
        self.images = [image for part in parts.values() for image in part]
        self.tested = len(parts[tested])
        self.input_shape = (3, self.crop, self.crop)
        names = [f"{image.parent.name}/{image.stem}" for image in self.images]
        return Loaded(LabelSpace.nominal(["no edge", "edge"]), {}, names=names)

    def cut(self) -> Fold:
        """The parts of the protocol; nothing is cut off for validation."""
        rows = np.arange(self.size)
        return Fold(rows[: -self.tested], rows[:0], rows[-self.tested :])

    def dataset(self, rows: np.ndarray, train: bool) -> EdgeImages:
        """The images ``rows``."""
        if not train:
            return EdgeImages(self.images, rows, self.tolerance)
        crops = Crops(self.crop, self.target, self.flips, self.turns, self.negatives, self.rotations, tuple(self.sizes))
        return EdgeImages(self.images, rows, self.tolerance, self.crop, crops)

    def image_dataloader(self, wants: Sequence[str] = ()) -> DataLoader[Any]:
        """The images of training, whole, maybe with ``boundaries`` and ``segments`` (1, A, H, W) of the annotators."""
        if unknown := [name for name in wants if name not in GroundTruth._fields]:
            return super().image_dataloader(unknown)
        images = EdgeImages(self.images, self.split.train, self.tolerance, self.crop, wants=wants)
        return in_order(images, len(images), 1)

    @property
    def eval_batch_size(self) -> int:
        """One image a process: sizes differ."""
        return current_collective().world_size

    def read(self, row: int) -> tuple[np.ndarray, GroundTruth]:
        """An image, (H, W, 3) uint8, and what its annotators drew. Raises LDLError where they do not fit."""
        return read_scene(self.images[row], self.crop if row in self.split.train else 1)

    def ground_truth(self, row: int) -> GroundTruth:
        """What the annotators of an image drew. Raises LDLError for an unusable file."""
        return read_ground_truth(truth_of(self.images[row]))


def list_part(folder: Path, part: str) -> list[Path]:
    """The images of ``train``, ``val`` or ``test``, by name, in the folder with ``images`` and ``groundTruth``.

    Raises LDLError: no such folder, no images in it, two of one name, or an image without ground truth or the other way
    round.
    """
    place = folder / "images" / part
    if not place.is_dir():
        raise LDLError(f"no folder at {place}; data.path, or LDL_DATA, must lead to images/ and groundTruth/")
    images = sorted(path for path in place.iterdir() if path.suffix.lower() in _SUFFIXES)
    if not images:
        raise LDLError(f"{place} holds no images; files that end in {', '.join(_SUFFIXES)} are read")
    for one, other in pairwise(sorted(images, key=lambda image: image.stem)):
        if one.stem == other.stem:
            raise LDLError(
                f"{place} has {one.name} and {other.name}, which are one image by name; take one of them out"
            )
    stems, drawn = {image.stem for image in images}, {path.stem for path in truth_of(images[0]).parent.glob("*.mat")}
    for missing, what in ((stems - drawn, "image has no ground truth"), (drawn - stems, "ground truth has no image")):
        if missing:
            count = f"{len(missing)} of {len(stems | drawn)}"
            raise LDLError(f"{folder}, part {part}: the {what}: {min(missing)} ({count})")
    return images
