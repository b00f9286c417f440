"""Faces in clutter, shifted or in three poses (Babenko et al. 2008, Section 3).

The paper took LFW's faces, and Viola and Jones's false alarms for clutter; here the clutter is cut from BSDS500's
photographs, and the faces are UTKFace's, or LFW's where they are at hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import cv2
import numpy as np

from ldl.data.pictures import list_pictures, read_picture
from ldl.data.sources import absent
from ldl.data.trials.mnist import draw
from ldl.data.trials.trials import Pictures, Trials
from ldl.options import option, options

PHOTOGRAPHS = "BSDS500/data/images"
Faces = Literal["UTKFace", "LFW"]
FOLDERS: dict[Faces, tuple[str, float]] = {"UTKFace": ("UTKFace", 1.0), "LFW": ("lfw", 1 / 2.2)}
"""Where faces lie, and the share of a picture's side that they take, in its middle: LFW's pictures are 2.2 times as
wide as what its detector found."""
WIDEST = 4.0
"""Clutter is cut at up to so many times its size, and shrunk."""


@options
class ShiftedFaces(Trials):
    """Faces against clutter, each at a random place of a larger piece of clutter: ``truth`` (size, 2) is its shift.

    Faces of ``UTKFace`` and squares cut from the photographs of ``BSDS500``, grey and of ``side`` pixels, lie on other
    such squares with ``margin`` more pixels on each side; negatives are made the same way, so that no edge gives a face
    away. Shifts are uniform, in whole pixels down and right of the top left corner.

    Args:
        side: Pixels of a face.
        margin: Pixels around it: shifts are 0 to twice as many.
        faces: Whose faces: UTKFace's, or LFW's.
    """

    side: int = option(default=43, least=2, most=4096, what="in pixels")
    margin: int = option(default=10, least=0, most=4096, what="in pixels")
    faces: Faces = "UTKFace"
    pictures: int = 800
    batch_size: int = 50
    names_of_labels = "clutter", "face"

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Cut faces and clutter. Raises LDLError: no pictures, or too few."""
        photographs, faces = read_grey(self.data_root, half, rng, self.faces)
        clutter = cut_clutter(photographs, half, self.side, rng)
        shrunk = np.stack([shrink(face, self.side) for face in faces])
        return self._shift(clutter, photographs, rng), self._shift(shrunk, photographs, rng)

    def _shift(self, objects: np.ndarray, photographs: list[np.ndarray], rng: np.random.Generator) -> Pictures:
        shifts = rng.integers(2 * self.margin + 1, size=(len(objects), 2))
        canvas = cut_clutter(photographs, len(objects), self.side + 2 * self.margin, rng)
        for picture, thing, (down, right) in zip(canvas, objects, shifts):
            picture[down : down + self.side, right : right + self.side] = thing
        return Pictures(canvas, shifts)


POSES = ((1.0, 0), (2.5, 0), (2.0, 1))
"""The paper's: scale, and quarter turns."""


@options
class PosedFaces(Trials):
    """Faces in three poses against clutter: ``truth`` (size,) is the pose, 0 to 2, and -1 of negatives.

    A third of the faces of ``UTKFace`` is left as it is, a third made 2.5 times as large, which fills the picture, a
    third twice as large and turned by 90 degrees. They lie in the middle of squares cut from the photographs of
    ``BSDS500``. Negatives are such squares in the same places, so that no edge gives a face away. All are grey.

    Args:
        side: Pixels of a picture.
        faces: Whose faces: UTKFace's, or LFW's.
    """

    side: int = option(default=40, least=5, most=4096, what="in pixels")
    faces: Faces = "UTKFace"
    pictures: int = 4000
    batch_size: int = 500
    names_of_labels = "clutter", "face"

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Cut faces and clutter. Raises LDLError: no pictures, or too few."""
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


def read_grey(
    root: Path, count: int, rng: np.random.Generator, faces: Faces
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """All photographs, and ``count`` different faces, below ``root``. Raises LDLError: no pictures, or too few."""
    place, share = FOLDERS[faces]
    for name, folder in (("BSDS500", PHOTOGRAPHS), (faces, place)):
        if not (root / folder).is_dir():
            raise absent(name, root / folder, root, "or --data.root")
    photographs = [grey(file) for file in list_pictures(root / PHOTOGRAPHS)]
    files = list_pictures(root / place)
    return photographs, [middle(grey(files[row]), share) for row in draw(np.arange(len(files)), count, rng)]


def middle(picture: np.ndarray, share: float) -> np.ndarray:
    """This share of the sides of a picture, in its middle."""
    top, left = (round(length * (1 - share) / 2) for length in picture.shape)
    return picture[top : picture.shape[0] - top, left : picture.shape[1] - left]


def cut_clutter(photographs: list[np.ndarray], count: int, side: int, rng: np.random.Generator) -> np.ndarray:
    """Squares (count, side, side) from random places of random photographs, at random scales (log-uniform)."""
    squares = np.empty((count, side, side), np.uint8)
    for square in squares:
        photograph = photographs[rng.integers(len(photographs))]
        scale = WIDEST ** rng.uniform()
        width = min(round(scale * side), *photograph.shape)
        top, left = (rng.integers(length - width + 1) for length in photograph.shape)
        square[:] = shrink(photograph[top : top + width, left : left + width], side)
    return squares


def grey(path: Path) -> np.ndarray:
    """A picture in grey, (height, width) uint8. Raises LDLError."""
    return cv2.cvtColor(read_picture(path), cv2.COLOR_RGB2GRAY)


def shrink(picture: np.ndarray, side: int) -> np.ndarray:
    """A picture as a square of ``side`` pixels."""
    return cv2.resize(np.ascontiguousarray(picture), (side, side), interpolation=cv2.INTER_AREA)
