"""A face in a photograph, and what finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

BOX_POINTS = np.array([[0.286, 0.397], [0.753, 0.391], [0.518, 0.610], [0.325, 0.768], [0.721, 0.764]])
"""Where landmarks lie in the box of a face drawn as WIDER FACE's are, from hairline to chin, in shares of its sides.

Medians of MTCNN's points in MTCNN's boxes over every fourth picture of FG-NET."""


@dataclass(frozen=True)
class Face:
    """A face that was found; places are pixels of the picture as it is seen, turned upright.

    Attributes:
        box: (4,) left, top, right, bottom; it may reach beyond the picture.
        confidence: How sure the detector is, in [0, 1].
        points: (5, 2) eyes, tip of the nose, corners of the mouth, as ``align.FACE_POINTS``; None where the detector
            gives none.
    """

    box: np.ndarray
    confidence: float
    points: np.ndarray | None = None

    def anchor(self, alignment: str | None) -> np.ndarray:
        """What places the face for ``align.placement``: with ``box`` its corners (4, 2), else landmarks (5, 2).

        Where the detector gives no landmarks, they are taken at their usual places in the box.
        """
        x0, y0, x1, y1 = self.box
        if alignment == "box":
            return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
        return self.points if self.points is not None else self.box[:2] + BOX_POINTS * (self.box[2:] - self.box[:2])

    @property
    def area(self) -> float:
        """Of the box, in pixels."""
        width, height = self.box[2:] - self.box[:2]
        return float(width * height)


class Detector(Protocol):
    """What finds faces.

    Attributes:
        name: What it is called in messages.
        key: What it is, in one word: other detectors, and other weights, have other keys.
    """

    name: str
    key: str

    def __call__(self, picture: np.ndarray) -> list[Face]:
        """The faces of a picture (H, W, 3) uint8 RGB, from left to right. Raises LDLError."""


def in_order(boxes: np.ndarray, confidences: np.ndarray, points: np.ndarray | None) -> list[Face]:
    """Faces from left to right, of boxes (n, 4), confidences (n,) and points (n, 5, 2) or None."""
    order = np.lexsort((boxes[:, 1], boxes[:, 0]))
    return [Face(boxes[row], float(confidences[row]), None if points is None else points[row]) for row in order]
