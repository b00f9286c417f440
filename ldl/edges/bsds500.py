"""BSDS500 (Arbelaez et al. 2011) and edge sets of its layout: the share of annotators that drew an edge at a pixel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ldl.batch import Batch
from ldl.collective import current_collective, process_rank
from ldl.data.base import LDLDataModule, Loaded
from ldl.data.loader import in_order
from ldl.data.pictures import SUFFIXES, describe, read_picture, same_bytes
from ldl.data.sampler import Draw
from ldl.data.sources import check_set
from ldl.edges.benchmark.ground_truth import GroundTruth, check_same_size, read_ground_truth, truth_file, truth_files
from ldl.edges.benchmark.thinning import SMOOTHING
from ldl.edges.crops import EdgeCrops, Target, vote_share
from ldl.edges.report import EdgeReport
from ldl.edges.tracing import trace
from ldl.errors import LDLError, SharedError
from ldl.head import Head
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.protocols import Fold, leak
from ldl.validation.files import visible

Protocol = Literal["development", "final"]


@dataclass(eq=False)
class EdgeImages(Dataset[Batch]):
    """Images ``input`` (3, H, W) uint8 with ``target`` (H, W, 2), the shares of annotators without and with an edge.

    Attributes:
        images: All images of the data set.
        index: (N,) the numbers of the images to serve.
        tolerance: See :func:`vote_share`.
        least: Minimum side of an image, in pixels.
        crops: Serve random crops, with ``keep`` (side, side), the pixels to learn from. None serves whole images.
        wants: Additional ground truth to serve with whole images: ``boundaries`` and ``segments``, (A, H, W) each.
    """

    images: list[Path]
    index: np.ndarray
    tolerance: float
    least: int = 1
    crops: EdgeCrops | None = None
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


@options
class BSDS500(LDLDataModule):
    """Images and ground truth of edges: ``images/PART/NAME.jpg`` and ``groundTruth/PART/NAME.mat``, or ``NAME.png``.

    Labels are {no edge, edge}; the target of a pixel is the share of annotators that drew an edge there. Training
    serves random crops. Validation and test serve whole images, one per process. Any data set of this layout works.

    Args:
        path: Folder with ``images`` and ``groundTruth``; None is ``BSDS500/data`` below the data folder.
        protocol: ``development`` trains on the part ``train`` and tests on ``val``; ``final``, for the result to
            report, trains on ``train`` and, if it exists, ``val``, and tests on ``test``.
        target: Training target. ``votes``: the share of annotators. ``consensus``: edge if at least half of the
            annotators agree, no edge if none drew one; other pixels are left out (Xie & Tu 2015). ``blended``: the mean
            of the losses of both. ``sampled``: one annotator, drawn at random every time.
        tolerance: An annotator counts at pixels up to this distance from the drawn line, in pixels.
        crop: Side of the training crops, in pixels.
        flips: Mirror crops at random.
        turns: Rotate crops by random multiples of 90 degrees.
        rotations: Rotate images by a random one of this number of equal angles; crops lie within the rotated image. 1
            rotates none, 16 is usual (Xie & Tu 2015). Lines stay as thin as they were drawn.
        sizes: Resize images by a random factor between these two, as far as a crop still fits.
        negatives: Number of random pixels without votes to learn from, for each pixel with votes: the balance of the
            classes. None keeps all pixels.
        batch_size: Crops of a global batch, over all processes.
        smoothing: Radius of the blur before the direction of an edge is estimated in the non-maximum suppression of
            test maps, in pixels. The usual 4 is for wide edges; networks draw narrow edges.
        crisp: Pixels beside the model's own ridges on maps that learn "no edge"; 0 trains on ``target`` everywhere.
    """

    path: str | None = option(default=None, role="path")
    protocol: Protocol = option(default="development", role="fold")
    target: Target = option(default="votes", role="label")
    tolerance: float = option(default=1.0, least=0, most=10, what="pixels", role="label")
    crop: int = option(default=192, least=32, most=4096, what="pixels")
    flips: bool = True
    turns: bool = True
    rotations: int = option(default=1, least=1, most=360)
    sizes: Sequence[float] = option(default=(1.0, 1.0), least=0.1, most=10)
    negatives: float | None = option(default=2.0, above=0, null="all pixels")
    batch_size: int = option(default=8, least=1, most=2**31 - 1)
    smoothing: int = option(default=SMOOTHING, least=0, most=100, what="pixels")
    crisp: float = option(default=0.0, least=0, most=10, what="pixels")

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
        present = (self.folder / "images").is_dir()
        check_set(present, "BSDS500", self.folder, None if self.path else self.data_root)
        trained, tested = (["train"], "val") if self.protocol == "development" else (["train", "val"], "test")
        if self.protocol == "final" and not (self.folder / "images" / "val").is_dir():
            trained = ["train"]
        parts = {subset: list_part(self.folder, subset) for subset in [*trained, tested]}
        self.images = [image for subset in parts.values() for image in subset]
        self.tested = len(parts[tested])
        self.input_shape = (3, self.crop, self.crop)
        names = [f"{image.parent.name}/{image.stem}" for image in self.images]
        copies = same_bytes(self.images)
        if (duplicates := describe(copies, names)) and process_rank() == 0:
            print(f"{duplicates}; they stay in the parts of their folders", flush=True)
        return Loaded(LabelSpace.nominal(["no edge", "edge"]), {}, names=names, copies=copies)

    def cut(self) -> Fold:
        """Return the parts of the protocol, without a validation set. An image in both makes it ``leaky``."""
        rows = np.arange(self.size)
        fold = Fold(rows[: -self.tested], rows[:0], rows[-self.tested :])
        self.leaky = self.copies is not None and leak(fold, self.copies) > 0
        return fold

    def dataset(self, rows: np.ndarray, train: bool) -> EdgeImages:
        """Return the images ``rows``."""
        if not train:
            return EdgeImages(self.images, rows, self.tolerance)
        moves = self.rotations, tuple(self.sizes)
        crops = EdgeCrops(self.crop, self.target, self.flips, self.turns, self.negatives, *moves)
        return EdgeImages(self.images, rows, self.tolerance, self.crop, crops)

    def image_dataloader(self, wants: Sequence[str] = ()) -> DataLoader[Any]:
        """Return the training images, whole, optionally with ``boundaries`` and ``segments`` (1, A, H, W)."""
        self._check_not_crisp()
        if unknown := [name for name in wants if name not in GroundTruth._fields]:
            return super().image_dataloader(unknown)
        images = EdgeImages(self.images, self.split.train, self.tolerance, self.crop, wants=wants)
        return in_order(images, len(images), 1)

    def fit_dataloader(self) -> DataLoader[Any]:
        """Return the training images, whole, for heads that are fitted on features."""
        self._check_not_crisp()
        return super().fit_dataloader()

    def _check_not_crisp(self) -> None:
        if self.crisp:
            raise SharedError(
                f"data.crisp {self.crisp:g} is for heads that learn by gradient at every pixel, with a backbone such "
                "as PixelFeatures; set it to 0 for other heads"
            )

    def learned_target(self, head: Head, features: Tensor, target: Tensor) -> Tensor:
        """Return the target of a batch, with "no edge" beside the ridges of the head's prediction if ``crisp``."""
        if features.ndim < target.ndim:
            self._check_not_crisp()
        return trace(head, features, target, self.crisp) if self.crisp else target

    def report_class(self, maps: bool) -> type[EdgeReport] | None:
        """Return :class:`EdgeReport` for predictions at every pixel."""
        return EdgeReport if maps else None

    @property
    def eval_batch_size(self) -> int:
        """One image per process, because sizes differ."""
        return current_collective().world_size

    def read(self, row: int) -> tuple[np.ndarray, GroundTruth]:
        """Read an image, (H, W, 3) uint8, and its ground truth. Raises LDLError if they do not fit."""
        return read_scene(self.images[row], self.crop if row in self.split.train else 1)

    def ground_truth(self, row: int) -> GroundTruth:
        """Read the ground truth of an image. Raises LDLError for an unusable file."""
        return read_ground_truth(truth_of(self.images[row]))


def list_part(folder: Path, subset: str) -> list[Path]:
    """Return the images of ``train``, ``val`` or ``test`` by name, in the folder with ``images`` and ``groundTruth``.

    Raises LDLError for a missing folder, no images, two images of one name, or images and ground truth without each
    other.
    """
    images_folder = folder / "images" / subset
    if not images_folder.is_dir():
        raise LDLError(f"no folder at {images_folder}; data.path, or LDL_DATA, must lead to images/ and groundTruth/")
    images = [path for path in visible(images_folder, "*") if path.suffix.lower() in SUFFIXES]
    if not images:
        raise LDLError(f"{images_folder} holds no images; files that end in {', '.join(SUFFIXES)} are read")
    stems, drawn = Counter(image.stem for image in images), set(truth_files(folder / "groundTruth" / subset))
    twice = {stem for stem, count in stems.items() if count > 1}
    for wrong, problem in (
        (twice, "image is there twice"),
        (stems.keys() - drawn, "image has no ground truth"),
        (drawn - stems.keys(), "ground truth has no image"),
    ):
        if wrong:
            raise LDLError(f"{folder}, part {subset}: the {problem}: {min(wrong)} ({len(wrong)} such)")
    return images


def read_scene(image: Path, crop: int = 1) -> tuple[np.ndarray, GroundTruth]:
    """Read an image, (H, W, 3) uint8, and its ground truth.

    Raises LDLError if they cannot be read, differ in size, or are too small for crops of ``crop`` pixels.
    """
    picture, truth = read_picture(image), read_ground_truth(truth_of(image))
    subject = f"{image} and its ground truth"
    check_same_size(subject, picture.shape[:2], truth.boundaries.shape[1:], "leave the image out")
    if min(picture.shape[:2]) < crop:
        size = "x".join(map(str, picture.shape[:2]))
        raise LDLError(f"{image} has {size} pixels, less than data.crop {crop}; lower it")
    return picture, truth


def truth_of(image: Path) -> Path:
    """Return the ground truth file of ``images/PART/NAME.jpg``: ``groundTruth/PART/NAME.mat`` or ``NAME.png``."""
    return truth_file(image.parents[2] / "groundTruth" / image.parent.name, image.stem)
