"""Detect faces in images: the detector MTCNN, and the record of a detected face."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ldl.data.images.locators import Detector
from ldl.errors import LDLError, explaining
from ldl.faces.lists import upright_corners

BOX_POINTS = np.array([[0.286, 0.397], [0.753, 0.391], [0.518, 0.610], [0.325, 0.768], [0.721, 0.764]])
"""Landmarks as shares of a box drawn as in WIDER FACE, from hairline to chin.

Medians of MTCNN's landmarks in MTCNN's boxes over every fourth image of FG-NET."""

LEAST_WIDTH, LEAST_WIDTH_SHARE = 20, 50
"""MTCNN's narrowest face: 20 pixels or a fiftieth of the longer side, since the work grows with its square."""


@dataclass(frozen=True)
class Face:
    """A detected face in pixels of the upright image.

    Attributes:
        box: (4,) left, top, right, bottom; it may reach beyond the image.
        confidence: Confidence of the detector, in [0, 1].
        points: (5, 2) eyes, tip of the nose, corners of the mouth, as in ``FACE_POINTS``, or None if unknown.
    """

    box: np.ndarray
    confidence: float
    points: np.ndarray | None = None

    def anchor(self, alignment: str | None) -> np.ndarray:
        """Return the points that locate the face: corners (4, 2) for ``box``, else landmarks (5, 2).

        Unknown landmarks are estimated from the box.
        """
        if alignment == "box":
            return upright_corners(self.box[None])[0]
        return self.points if self.points is not None else self.box[:2] + BOX_POINTS * (self.box[2:] - self.box[:2])

    @property
    def area(self) -> float:
        """Area of the box in pixels."""
        width, height = self.box[2:] - self.box[:2]
        return float(width * height)


def find_detector(name: str | Path) -> Detector:
    """Return the detector ``mtcnn``. Raises LDLError for another name."""
    if str(name) != "mtcnn":
        raise LDLError(f"no detector {str(name)!r}; give mtcnn, or in Python a detector of your own")
    return MTCNN()


class MTCNN:
    """MTCNN (Zhang et al., IEEE Signal Processing Letters 2016) from facenet-pytorch, with landmarks, on the CPU.

    Faces narrower than 20 pixels, or than a fiftieth of the image's longer side, are not detected.

    Raises:
        LDLError: facenet-pytorch is not installed.
    """

    name = "mtcnn"

    def __init__(self) -> None:
        with explaining("detector mtcnn needs facenet-pytorch", "pip install 'ldl[faces]'", (ImportError,)):
            from facenet_pytorch import MTCNN as Cascade
        self.key = f"mtcnn-{version('facenet-pytorch')}"
        self._cascade = Cascade(keep_all=True, device="cpu")

    def __call__(self, picture: np.ndarray) -> list[Face]:
        """Return the faces of an image (H, W, 3) uint8 RGB, from left to right."""
        height, width = picture.shape[:2]
        smallest = max(LEAST_WIDTH, max(height, width) // LEAST_WIDTH_SHARE)
        if min(height, width) < smallest:
            return []  # the cascade would have no scale, and fail
        self._cascade.min_face_size = smallest
        boxes, confidences, points = self._cascade.detect(picture, landmarks=True)
        if boxes is None or boxes[0] is None:
            return []
        boxes, confidences, points = (np.asarray(column, dtype=float) for column in (boxes, confidences, points))
        order = np.lexsort((boxes[:, 1], boxes[:, 0]))
        return [Face(boxes[row], float(confidences[row]), points[row]) for row in order]
