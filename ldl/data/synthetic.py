"""Synthetic image sets: rotated, shifted and mixed digits, and faces in clutter.

The sets with a known truth follow Babenko et al. 2008, "Simultaneous Learning and Alignment: Multi-Instance and
Multi-Pose Learning", Section 3. The paper used LFW's faces, and false alarms of Viola and Jones's detector for clutter.
Here clutter is cut from the photographs of BSDS500, and the faces are UTKFace's, or LFW's if chosen.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Literal, NamedTuple

import cv2
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample
from typing_extensions import override

from ldl.data.base import LDLDataModule, Loaded
from ldl.data.pictures import list_pictures, read_picture
from ldl.data.sources import check_set
from ldl.errors import ANY_ERROR, LDLError, explaining
from ldl.labels import LabelSpace, check_count
from ldl.moved import old_names
from ldl.options import buffer, option, options
from ldl.protocols import Fold, with_validation
from ldl.validation.archive import check_archive
from ldl.validation.files import check_file

MNIST_SIDE = 28
PHOTOGRAPHS = "BSDS500/data/images"
FaceSet = Literal["UTKFace", "LFW"]
FOLDERS: dict[FaceSet, tuple[str, float]] = {"UTKFace": ("UTKFace", 1.0), "LFW": ("lfw", 1 / 2.2)}
"""Folder of the faces, and the share of an image's side that a face takes in its middle: an image of LFW is 2.2 times
as wide as the box of its detector."""
WIDEST = 4.0
"""Clutter is cut at up to this many times its size, and shrunk."""
POSES = ((1.0, 0), (2.5, 0), (2.0, 1))
"""Scale and number of quarter turns of each pose, as in the paper."""


@options
class RotatedDigits(LDLDataModule):
    """The built-in data set: scikit-learn's 1,797 handwritten 8x8 digits, rotated by known random angles.

    The label space is the angle in degrees, which is ambiguous: a 0, 1 or 8 rotated by 100 degrees looks like one
    rotated by -80, and a 6 like a 9 upside down. Images are padded to 12x12 (1 channel, 0 to 1), so that the rotation
    cuts no corner. All rotations of one digit are one group and stay in one part of a fold.

    Args:
        turns: Number of rotated copies of each digit.
        max_angle: Angles are uniform in [-max_angle, max_angle] degrees, at most 180.
        step: Distance between labels in degrees, which must divide ``max_angle``.
        sigma: Standard deviation of the Gaussian label distributions, in degrees.
        turn_seed: Seed of the angles.

    Examples:
        >>> from ldl.data import RotatedDigits
        >>> data = RotatedDigits(turns=1)
        >>> data.setup()
        >>> batch = next(iter(data.train_dataloader()))
        >>> batch["input"].shape, batch["target"].shape
        (torch.Size([128, 1, 12, 12]), torch.Size([128, 49]))
    """

    turns: int = option(default=4, least=1, most=100, role="fold")
    max_angle: float = option(default=120.0, above=0, most=180, what="in degrees", role="fold")
    step: float = option(default=5.0, above=0, what="in degrees", role="fold")
    sigma: float = option(default=5.0, above=0, what="in degrees", role="label")
    turn_seed: int = option(default=0, least=0, role="fold")
    batch_size: int = 128
    root = None

    def load(self) -> Loaded:
        """Rotate the digits. Raises LDLError if the step does not divide the largest angle."""
        check_count(2 * self.max_angle / self.step, "widen data.step")
        half = round(self.max_angle / self.step)
        if half < 1 or abs(half * self.step - self.max_angle) > 1e-6:
            raise LDLError(f"RotatedDigits.step {self.step:g} must divide max_angle {self.max_angle:g}")
        labels = LabelSpace.ordinal([self.step * k for k in range(-half, half + 1)], "degrees")
        digits = np.pad(load_digits().images / 16.0, ((0, 0), (2, 2), (2, 2))).repeat(self.turns, axis=0)
        angles = np.random.default_rng(self.turn_seed).uniform(-self.max_angle, self.max_angle, len(digits))
        cos, sin, none = np.cos(np.deg2rad(angles)), np.sin(np.deg2rad(angles)), np.zeros(len(digits))
        turns = torch.from_numpy(np.stack([cos, -sin, none, sin, cos, none], 1).reshape(-1, 2, 3))
        grid = affine_grid(turns, [len(digits), 1, *digits.shape[1:]], align_corners=True)
        self.images = grid_sample(torch.from_numpy(digits)[:, None], grid, align_corners=True).float()
        target = labels.encode(torch.tensor(angles, dtype=torch.float32), self.sigma)
        return Loaded(labels, {"target": target}, angles, np.arange(len(digits)) // self.turns)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the rotated digits ``rows``, without augmentation."""
        return self.images[torch.from_numpy(rows)]


class Pictures(NamedTuple):
    """``images`` (N, H, W) uint8 grey, and ``truth`` (N,) or (N, 2), which models do not see."""

    images: np.ndarray
    truth: np.ndarray


@options
class Trials(LDLDataModule):
    """The base of sets of grey images (1, H, W) of 0 to 255 with two labels, half of them positive; a fold is a trial.

    Every trial trains on another random share of the same images, with as many positives as negatives, and tests on
    all others. Test sets of different trials overlap, as in Babenko et al. 2008.

    Args:
        pictures: Number of images; half are positive.
        train_fraction: Share of the images that a trial trains on.
        draw_seed: Seed of the images and of the places in them.
        folds: Number of trials.
        fold: The trial, from 0.

    Attributes:
        truth: (size, ...) quantities for a model to discover, such as places or groups; meaningless for negatives.
        positive: (size,) whether an image is positive.
    """

    pictures: int = option(default=1000, least=4, most=10**6, role="fold")
    train_fraction: float = option(default=0.5, above=0, below=1, what="a share of the images", role="fold")
    draw_seed: int = option(default=0, least=0, role="fold")
    val_fraction: float = 0.0

    protocol = "trials"
    leaky = None
    truth: np.ndarray = buffer()
    positive: np.ndarray = buffer()

    @property
    @abstractmethod
    def names_of_labels(self) -> tuple[str, str]:
        """Names of the negatives and the positives."""

    @abstractmethod
    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Make ``half`` negatives and ``half`` positives. Raises LDLError."""

    def load(self) -> Loaded:
        """Make the images. Raises LDLError."""
        if self.pictures % 2:
            raise LDLError(f"{type(self).__name__}.pictures {self.pictures} must be even: half of them are positive")
        rng = np.random.default_rng(self.draw_seed)
        negative, positive = self.make(self.pictures // 2, rng)
        order = rng.permutation(self.pictures)
        self.images = torch.from_numpy(np.concatenate([negative.images, positive.images])[order]).unsqueeze(1)
        self.truth = np.concatenate([negative.truth, positive.truth])[order]
        self.positive = order >= self.pictures // 2
        return Loaded(LabelSpace.nominal(self.names_of_labels), {"target": torch.eye(2)[self.positive.astype(int)]})

    def cut(self) -> Fold:
        """Return the rows of a trial. Raises LDLError for a trial or a share that does not exist."""
        if not 0 <= self.fold < self.folds:
            raise LDLError(f"fold {self.fold} must be in 0..{self.folds - 1}, one of the {self.folds} trials")
        count = round(self.train_fraction * self.size)
        if not 2 <= count <= self.size - 2:
            raise LDLError(f"train_fraction {self.train_fraction:g} of {self.size} images leaves a part empty")
        state = int(np.random.default_rng([self.fold_seed, self.fold]).integers(2**32))
        rows = np.arange(self.size)
        train, test = train_test_split(rows, train_size=count, stratify=self.positive, random_state=state)
        return with_validation(train, test, self.val_fraction, self.fold_seed, self.fold)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the images ``rows``, without augmentation."""
        return self.images[torch.from_numpy(rows)]


@options
class ShiftedDigits(Trials):
    """One digit against the others, each at a random place of a larger image: ``truth`` (size, 2) is its shift.

    The 28 x 28 images of ``mnist.npz`` are placed on black, with ``margin`` pixels on each side, and shifted uniformly
    by whole pixels, down and right of the top left corner. Negatives are shifted like positives.

    Args:
        digit: The positive digit.
        margin: Pixels on each side; shifts are 0 to twice as many.
    """

    digit: int = option(default=3, least=0, most=9, role="label")
    margin: int = option(default=8, least=0, most=4096, what="in pixels")
    train_fraction: float = 0.1
    batch_size: int = 50

    @property
    @override
    def names_of_labels(self) -> tuple[str, str]:
        return "other", f"{self.digit}"

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Draw digits and shifts. Raises LDLError if there is no file or are too few digits."""
        images, digits = read_mnist(self.data_root)
        negative = images[draw(np.flatnonzero(digits != self.digit), half, rng)]
        positive = images[draw(np.flatnonzero(digits == self.digit), half, rng)]
        return self._shift(negative, rng), self._shift(positive, rng)

    def _shift(self, images: np.ndarray, rng: np.random.Generator) -> Pictures:
        shifts = rng.integers(2 * self.margin + 1, size=(len(images), 2))
        side = MNIST_SIDE + 2 * self.margin
        return pasted(images, np.zeros((len(images), side, side), np.uint8), shifts)


@options
class MixedDigits(Trials):
    """Several digits against the others: ``truth`` (size,) is the digit, to compare discovered groups with.

    Args:
        positive_digits: The positive digits, each as frequent as the others except for a remainder.
    """

    positive_digits: tuple[int, ...] = option(default=(0, 1, 2), role="label")
    pictures: int = 3000
    train_fraction: float = 0.4
    batch_size: int = 500

    @property
    @override
    def names_of_labels(self) -> tuple[str, str]:
        return "other", ", ".join(map(str, self.positive_digits))

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Draw digits. Raises LDLError if there is no file, are too few digits, or no such digits."""
        chosen = set(self.positive_digits)
        if not chosen < set(range(10)) or not chosen or len(chosen) < len(self.positive_digits):
            raise LDLError(
                f"MixedDigits.positive_digits {list(self.positive_digits)} must be different digits, 1 to 9 of them"
            )
        images, digits = read_mnist(self.data_root)
        shares = np.array_split(np.arange(half), len(chosen))
        rows = [draw(np.flatnonzero(digits == digit), len(share), rng) for digit, share in zip(sorted(chosen), shares)]
        positive, negative = np.concatenate(rows), draw(np.flatnonzero(~np.isin(digits, list(chosen))), half, rng)
        return Pictures(images[negative], digits[negative]), Pictures(images[positive], digits[positive])


@options
class ShiftedFaces(Trials):
    """Faces against clutter, each at a random place of a larger piece of clutter: ``truth`` (size, 2) is its shift.

    Faces of ``UTKFace`` and squares cut from the photographs of ``BSDS500``, grey and of ``side`` pixels, lie on other
    such squares with ``margin`` more pixels on each side. Negatives are made in the same way, so that an edge does not
    reveal a face. Shifts are uniform, in whole pixels down and right of the top left corner.

    Args:
        side: Pixels of a face.
        margin: Pixels on each side; shifts are 0 to twice as many.
        faces: Data set of the faces.
    """

    side: int = option(default=43, least=2, most=4096, what="in pixels")
    margin: int = option(default=10, least=0, most=4096, what="in pixels")
    faces: FaceSet = option(default="UTKFace", role="fold")
    pictures: int = 800
    batch_size: int = 50
    names_of_labels = "clutter", "face"

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Cut faces and clutter. Raises LDLError if there are no images or too few."""
        photographs, faces = read_grey(self.data_root, half, rng, self.faces)
        clutter = cut_clutter(photographs, half, self.side, rng)
        shrunk = np.stack([shrink(face, self.side) for face in faces])
        return self._shift(clutter, photographs, rng), self._shift(shrunk, photographs, rng)

    def _shift(self, objects: np.ndarray, photographs: list[np.ndarray], rng: np.random.Generator) -> Pictures:
        shifts = rng.integers(2 * self.margin + 1, size=(len(objects), 2))
        return pasted(objects, cut_clutter(photographs, len(objects), self.side + 2 * self.margin, rng), shifts)


@options
class PosedFaces(Trials):
    """Faces in three poses against clutter: ``truth`` (size,) is the pose, 0 to 2, and -1 for negatives.

    A third of the faces of ``UTKFace`` keeps its size, a third is 2.5 times as large, which fills the image, and a
    third is twice as large and rotated by 90 degrees. They lie in the middle of squares cut from the photographs of
    ``BSDS500``. Negatives are such squares in the same places, so that an edge does not reveal a face. All are grey.

    Args:
        side: Pixels of an image.
        faces: Data set of the faces.
    """

    side: int = option(default=40, least=5, most=4096, what="in pixels")
    faces: FaceSet = "UTKFace"
    pictures: int = 4000
    batch_size: int = 500
    names_of_labels = "clutter", "face"

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Cut faces and clutter. Raises LDLError if there are no images or too few."""
        photographs, faces = read_grey(self.data_root, half, rng, self.faces)
        clutter = list(cut_clutter(photographs, half, max(face.shape[0] for face in faces), rng))
        negative = self._pose(clutter, photographs, rng)
        return Pictures(negative.images, np.full(half, -1)), self._pose(faces, photographs, rng)

    def _pose(self, objects: list[np.ndarray], photographs: list[np.ndarray], rng: np.random.Generator) -> Pictures:
        poses = np.arange(len(objects)) % len(POSES)
        canvas = cut_clutter(photographs, len(objects), self.side, rng)
        largest = max(scale for scale, _ in POSES)
        for picture, thing, pose in zip(canvas, objects, poses):
            scale, turns = POSES[pose]
            width = round(self.side * scale / largest)
            start = (self.side - width) // 2
            picture[start : start + width, start : start + width] = np.rot90(shrink(thing, width), turns)
        return Pictures(canvas, poses)


def pasted(objects: np.ndarray, canvas: np.ndarray, shifts: np.ndarray) -> Pictures:
    """Paste an object (side, side) into each image of ``canvas``, with its top left corner at ``shifts`` (N, 2)."""
    side = objects.shape[1]
    for picture, thing, (down, right) in zip(canvas, objects, shifts):
        picture[down : down + side, right : right + side] = thing
    return Pictures(canvas, shifts)


def read_mnist(root: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the training images (N, 28, 28) uint8 of ``mnist.npz``, and their digits (N,). Raises LDLError."""
    path = root / "mnist.npz"
    check_set(path.exists(), path.name, path, root, "or --data.root")
    check_archive(check_file(path))
    with (
        explaining(f"{path} is not MNIST as Keras has it (x_train, y_train)", errors=ANY_ERROR),
        np.load(path, allow_pickle=False) as file,
    ):
        images, digits = file["x_train"], file["y_train"].astype(np.int64)
    if images.shape[1:] != (MNIST_SIDE, MNIST_SIDE) or images.dtype != np.uint8:
        raise LDLError(f"{path} has images {images.shape} {images.dtype}; MNIST's are (N, 28, 28) uint8")
    return images, digits


def draw(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``count`` different rows. Raises LDLError if there are too few."""
    if count > len(rows):
        raise LDLError(f"option pictures needs {count} images of a kind of which there are {len(rows)}; lower it")
    return rng.choice(rows, count, replace=False)


def read_grey(
    root: Path, count: int, rng: np.random.Generator, faces: FaceSet
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return all photographs, and ``count`` different faces, below ``root``. Raises LDLError if there are too few."""
    face_folder, share = FOLDERS[faces]
    for name, folder in (("BSDS500", PHOTOGRAPHS), (faces, face_folder)):
        check_set((root / folder).is_dir(), name, root / folder, root, "or --data.root")
    photographs = [grey(file) for file in list_pictures(root / PHOTOGRAPHS)]
    files = list_pictures(root / face_folder)
    cropped = []
    for row in draw(np.arange(len(files)), count, rng):
        picture = grey(files[row])
        top, left = (round(length * (1 - share) / 2) for length in picture.shape)
        cropped.append(picture[top : picture.shape[0] - top, left : picture.shape[1] - left])
    return photographs, cropped


def cut_clutter(photographs: list[np.ndarray], count: int, side: int, rng: np.random.Generator) -> np.ndarray:
    """Cut squares (count, side, side) from random places of random photographs, at random log-uniform scales."""
    squares = np.empty((count, side, side), np.uint8)
    for square in squares:
        photograph = photographs[rng.integers(len(photographs))]
        scale = WIDEST ** rng.uniform()
        width = min(round(scale * side), *photograph.shape)
        top, left = (rng.integers(length - width + 1) for length in photograph.shape)
        square[:] = shrink(photograph[top : top + width, left : left + width], side)
    return squares


def grey(path: Path) -> np.ndarray:
    """Read an image in grey, (height, width) uint8. Raises LDLError."""
    return cv2.cvtColor(read_picture(path), cv2.COLOR_RGB2GRAY)


def shrink(picture: np.ndarray, side: int) -> np.ndarray:
    """Resize an image to a square of ``side`` pixels."""
    return cv2.resize(np.ascontiguousarray(picture), (side, side), interpolation=cv2.INTER_AREA)


__getattr__ = old_names(__name__)
