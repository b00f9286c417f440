"""MTCNN (Zhang et al., IEEE Signal Processing Letters 2016), of facenet-pytorch, whose wheel holds the weights."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from ldl.data.faces.detection.face import Face, in_order
from ldl.errors import LDLError

SMALLEST = 20
"""Pixels of the narrowest face."""
SHARE = 50
"""The narrowest face is this part of the longer side, where that is more: the work falls with its square."""


class MTCNN:
    """Faces with five landmarks, on the CPU.

    Faces narrower than 20 pixels, or than a fiftieth of the picture's longer side, are not sought. Raises LDLError
    where facenet-pytorch is not installed.
    """

    name = "mtcnn"

    def __init__(self) -> None:
        try:
            from facenet_pytorch import MTCNN as Cascade
        except ImportError as error:
            raise LDLError(f"detector mtcnn needs facenet-pytorch ({error}): pip install 'ldl[faces]'") from None
        self.key = f"mtcnn-{version('facenet-pytorch')}"
        self._cascade = Cascade(keep_all=True, device="cpu")

    def __call__(self, picture: np.ndarray) -> list[Face]:
        """The faces of a picture (H, W, 3) uint8 RGB, from left to right."""
        height, width = picture.shape[:2]
        smallest = max(SMALLEST, max(height, width) // SHARE)
        if min(height, width) < smallest:
            return []  # the cascade would have no scale to look at, and fail
        self._cascade.min_face_size = smallest
        boxes, confidences, points = self._cascade.detect(picture, landmarks=True)
        if boxes is None or boxes[0] is None:
            return []
        return in_order(*(np.asarray(found, dtype=float) for found in (boxes, confidences, points)))
