"""BSDS500 (Arbelaez et al. 2011) and edge sets of its layout: at every pixel, how many annotators drew an edge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import cv2
import numpy as np
import torch
from torch.utils.data import Dataset

from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.data.instances import Batch
from ldl.data.pictures import read_picture
from ldl.data.sampler import Draw
from ldl.edges.ground_truth import GroundTruth, read_ground_truth
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.protocols import Fold

if TYPE_CHECKING:
    import pytorch_lightning as pl

Target = Literal["votes", "consensus"]
Protocol = Literal["development", "final"]

CONSENSUS = 0.5
"""Share of the annotators from which on a pixel counts as an edge for certain."""

_SUFFIXES = (".jpg", ".png")


class EdgeImages(Dataset[Batch]):
    """Images with the share of annotators that drew an edge at each pixel; of training images, random crops.

    Args:
        data: The data module that they belong to.
        rows: (N,) rows of it.
        train: Serve random crops, mirrored and turned, with ``keep`` (crop, crop): the pixels to learn from.
    """

    def __init__(self, data: BSDS500, rows: np.ndarray, train: bool) -> None:
        self.data = data
        self.rows = rows
        self.train = train
        self._kept: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, draw: Draw) -> dict[str, Any]:
        row = int(self.rows[draw.row])
        picture, share = self._read(row)
        more = {}
        if self.train:
            rng = np.random.default_rng(draw.seed)
            picture, share = self._augment(picture, share, rng)
            more["keep"] = torch.from_numpy(self._keep(share, rng))
            if self.data.target == "consensus":
                share = (share >= CONSENSUS).astype(np.float32)
        return {
            "input": torch.from_numpy(np.array(picture)).permute(2, 0, 1),
            "target": torch.from_numpy(np.stack([1 - share, share], -1)),
            "index": torch.tensor(row),
            "weight": torch.tensor(draw.weight),
            **more,
        }

    def _read(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        if row in self._kept:
            return self._kept[row]
        picture, truth = self.data.read(row)
        loaded = picture, self.data.share(truth)
        if self.train:
            self._kept[row] = loaded
        return loaded

    def _augment(
        self, picture: np.ndarray, share: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        size = self.data.crop
        y, x = (int(rng.integers(length - size + 1)) for length in share.shape)
        picture, share = picture[y : y + size, x : x + size], share[y : y + size, x : x + size]
        if self.data.flips and rng.random() < 0.5:
            picture, share = picture[:, ::-1], share[:, ::-1]
        if self.data.turns:
            quarters = int(rng.integers(4))
            picture, share = np.rot90(picture, quarters), np.rot90(share, quarters)
        return picture, share

    def _keep(self, share: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        empty = share == 0
        drawn = ~empty if self.data.target == "votes" else share >= CONSENSUS
        if self.data.negatives is None:
            return drawn | empty
        wanted = self.data.negatives * max(int(drawn.sum()), share.size // 100)
        return drawn | (empty & (rng.random(share.shape) < wanted / max(1, int(empty.sum()))))


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
        tolerance: An annotator counts for a pixel up to this far from the line that was drawn, in pixels.
        crop: Side of the crops of training, in pixels.
        flips: Mirror crops at random.
        turns: Turn crops by random right angles.
        negatives: Pixels without any vote that a crop is learned from, for each one with votes, drawn at random: the
            balance of the classes. None learns from all.
        batch_size: Crops of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
    """

    leaky = False
    names: list[str]

    def __init__(
        self,
        path: str | None = None,
        protocol: Protocol = "development",
        target: Target = "votes",
        tolerance: float = 1.0,
        crop: int = 192,
        flips: bool = True,
        turns: bool = True,
        negatives: float | None = 2.0,
        batch_size: int = 8,
        num_workers: int = 0,
        root: str | None = None,
    ) -> None:
        super().__init__(batch_size, num_workers, root, folds=1, val_fraction=0)
        self.path = path
        self.protocol = protocol
        self.target = target
        self.tolerance = tolerance
        self.crop = crop
        self.flips = flips
        self.turns = turns
        self.negatives = negatives

    @property
    def folder(self) -> Path:
        """The folder with ``images`` and ``groundTruth``."""
        if not self.path:
            return self.data_root / "BSDS500" / "data"
        return place if (place := Path(self.path)).exists() else self.data_root / self.path

    def load(self) -> None:
        """List the images of the protocol's parts. Raises LDLError for missing folders, images or ground truth."""
        self._check()
        trained, tested = (["train"], "val") if self.protocol == "development" else (["train", "val"], "test")
        if self.protocol == "final" and not (self.folder / "images" / "val").is_dir():
            trained = ["train"]
        parts = {part: list_part(self.folder, part) for part in [*trained, tested]}
        self.images = [image for part in parts.values() for image in part]
        self.names = [f"{image.parent.name}/{image.stem}" for image in self.images]
        self.size = len(self.images)
        self.tested = len(parts[tested])
        self.labels = LabelSpace.nominal(["no edge", "edge"])
        self.input_shape = (3, self.crop, self.crop)

    def cut(self) -> Fold:
        """The parts of the protocol; nothing is cut off for validation."""
        rows = np.arange(self.size)
        return Fold(rows[: -self.tested], rows[:0], rows[-self.tested :])

    def dataset(self, rows: np.ndarray, train: bool) -> EdgeImages:
        """The images ``rows``."""
        return EdgeImages(self, rows, train)

    @property
    def eval_batch_size(self) -> int:
        """One image a process: sizes differ."""
        return current_collective().world_size

    def report(self, folder: Path, draw: bool) -> pl.Callback:
        """What writes edge maps, evaluates them and draws the curve."""
        from ldl.callbacks.edge_report import EdgeReport

        return EdgeReport(folder, draw)

    def read(self, row: int) -> tuple[np.ndarray, GroundTruth]:
        """An image, (H, W, 3) uint8, and what its annotators drew. Raises LDLError where they do not fit."""
        image = self.images[row]
        picture, truth = read_picture(image), self.ground_truth(row)
        if picture.shape[:2] != truth.boundaries.shape[1:]:
            raise LDLError(
                f"{image} and its ground truth differ in size, {'x'.join(map(str, picture.shape[:2]))} and "
                f"{'x'.join(map(str, truth.boundaries.shape[1:]))} pixels"
            )
        if row in self.split.train and min(picture.shape[:2]) < self.crop:
            raise LDLError(
                f"{image} has {picture.shape[0]}x{picture.shape[1]} pixels, less than data.crop {self.crop}; lower it"
            )
        return picture, truth

    def ground_truth(self, row: int) -> GroundTruth:
        """What the annotators of an image drew. Raises LDLError for an unusable file."""
        return read_ground_truth(truth_of(self.images[row]))

    def share(self, truth: GroundTruth) -> np.ndarray:
        """Share of the annotators that drew an edge at each pixel, (H, W) float32 in 0..1."""
        y, x = np.mgrid[-int(self.tolerance) : int(self.tolerance) + 1, -int(self.tolerance) : int(self.tolerance) + 1]
        disc = (y * y + x * x <= self.tolerance**2).astype(np.uint8)
        near = [cv2.dilate(drawn.astype(np.uint8), disc) for drawn in truth.boundaries]
        return np.mean(near, 0, dtype=np.float32)

    def _check(self) -> None:
        for name, accepted in (("protocol", Protocol), ("target", Target)):
            if getattr(self, name) not in get_args(accepted):
                raise LDLError(f"data.{name} {getattr(self, name)!r} must be one of {', '.join(get_args(accepted))}")
        if not 0 <= self.tolerance <= 10:
            raise LDLError(f"data.tolerance {self.tolerance!r} must be in 0..10 pixels")
        if self.crop < 32:
            raise LDLError(f"data.crop {self.crop} must be at least 32 pixels")
        if self.negatives is not None and not self.negatives > 0:
            raise LDLError(f"data.negatives {self.negatives!r} must be positive, or null for all pixels")


def list_part(folder: Path, part: str) -> list[Path]:
    """The images of one part, by name.

    Args:
        folder: The folder with ``images`` and ``groundTruth``.
        part: ``train``, ``val`` or ``test``.

    Raises:
        LDLError: no such folder, no images in it, or an image without ground truth or the other way round.
    """
    place = folder / "images" / part
    if not place.is_dir():
        raise LDLError(f"no folder at {place}; data.path, or LDL_DATA, must lead to images/ and groundTruth/")
    images = sorted(path for path in place.iterdir() if path.suffix.lower() in _SUFFIXES)
    if not images:
        raise LDLError(f"{place} holds no images; files that end in {', '.join(_SUFFIXES)} are read")
    stems, drawn = {image.stem for image in images}, {path.stem for path in truth_of(images[0]).parent.glob("*.mat")}
    for missing, what in ((stems - drawn, "image has no ground truth"), (drawn - stems, "ground truth has no image")):
        if missing:
            count = f"{len(missing)} of {len(stems | drawn)}"
            raise LDLError(f"{folder}, part {part}: the {what}: {min(missing)} ({count})")
    return images


def truth_of(image: Path) -> Path:
    """The ground truth file of ``.../images/PART/NAME.jpg``."""
    return image.parents[2] / "groundTruth" / image.parent.name / f"{image.stem}.mat"
