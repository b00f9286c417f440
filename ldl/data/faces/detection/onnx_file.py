"""A user's own detector: an ONNX file of a known layout."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ldl.data.faces.detection.face import Face, in_order
from ldl.data.faces.detection.layouts import LAYOUTS, Layout
from ldl.data.files import check_file
from ldl.errors import LDLError

LONGER_SIDE = 640
"""Pixels of a picture for a file that takes any size, in steps of ``STEP``."""
STEP = 32
OVERLAP = 0.3
"""Boxes that share more with a surer one, intersection over union, are the same face."""


class OnnxDetector:
    """Faces by an ONNX file with the inputs and outputs of YuNet (OpenCV's zoo) or of UltraFace, on the CPU.

    Args:
        path: The file.

    Raises:
        LDLError: no such file, no ONNX, one of another layout, or onnxruntime is not installed.
    """

    def __init__(self, path: Path) -> None:
        check_file(path, "detector", "give mtcnn, or a detector's ONNX file")
        try:
            import onnxruntime
        except ImportError:
            raise LDLError(f"detector {path} needs onnxruntime: pip install 'ldl[faces]'") from None
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # older files draw a warning a weight
        content = path.read_bytes()
        try:
            self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # those of onnxruntime have no common base
            raise LDLError(f"{path} cannot be read as ONNX: {' '.join(str(error).split())[:160]}") from None
        self.name, self.key = path.name, hashlib.sha256(content).hexdigest()[:20]
        self._layout, (self._height, self._width) = _layout(path, self._session)

    def __call__(self, picture: np.ndarray) -> list[Face]:
        """The faces of a picture (H, W, 3) uint8 RGB, from left to right. Raises LDLError where the file fails."""
        scale, canvas = self._fit(picture)
        pixels = (canvas[:, :, ::-1] if self._layout.bgr else canvas).astype(np.float32)
        pixels = (pixels - np.float32(self._layout.mean)) / np.float32(self._layout.scale)
        feed = {self._session.get_inputs()[0].name: np.ascontiguousarray(pixels.transpose(2, 0, 1))[None]}
        try:
            outputs = dict(zip(self._layout.outputs, self._session.run(list(self._layout.outputs), feed)))
            boxes, confidences, points = self._layout.decode(outputs, canvas.shape[:2])
        except Exception as error:  # as above
            reason = " ".join(str(error).split())[:160]
            raise LDLError(f"detector {self.name} fails on a picture of {canvas.shape[:2]} pixels: {reason}") from None
        kept = distinct(boxes, confidences, self._layout.least)
        return in_order(boxes[kept] / scale, confidences[kept], None if points is None else points[kept] / scale)

    def _fit(self, picture: np.ndarray) -> tuple[float, np.ndarray]:
        """The picture in the size that the file takes, filled up with black below and to the right; and by how much."""
        height, width = picture.shape[:2]
        limits = (self._height or LONGER_SIDE, self._width or LONGER_SIDE)
        scale = min(limits[0] / height, limits[1] / width)
        scale = scale if self._height and self._width else min(1.0, scale)
        small = max(1, round(height * scale)), max(1, round(width * scale))
        sides = (self._height or -(-small[0] // STEP) * STEP, self._width or -(-small[1] // STEP) * STEP)
        canvas = np.zeros((*sides, 3), np.uint8)
        canvas[: small[0], : small[1]] = cv2.resize(picture, small[::-1], interpolation=cv2.INTER_AREA)
        return scale, canvas


def _layout(path: Path, session: Any) -> tuple[Layout, tuple[int | None, int | None]]:
    """The layout of a file and the height and width it takes, None for any. Raises LDLError for one unknown."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    one_picture, named = len(inputs) == 1 and len(inputs[0].shape) == 4, {output.name for output in outputs}
    for layout in LAYOUTS:
        if one_picture and named.issuperset(layout.outputs):
            height, width = (side if isinstance(side, int) and side > 0 else None for side in inputs[0].shape[2:])
            return layout, (height, width)
    found = [", ".join(f"{one.name} {one.shape}" for one in part[:6]) for part in (inputs, outputs)]
    known = " or ".join(f"{layout.name} ({', '.join(layout.outputs[:4])})" for layout in LAYOUTS)
    raise LDLError(
        f"{path} is no detector of a known layout: it has inputs {found[0]} and outputs {found[1]}; "
        f"give mtcnn, or a file with one picture (1, 3, H, W) in and the outputs of {known}"
    )


def distinct(boxes: np.ndarray, confidences: np.ndarray, least: float) -> np.ndarray:
    """Rows of boxes (n, 4) that are sure and overlap with no surer one."""
    rows = np.flatnonzero((confidences >= least) & np.isfinite(boxes).all(1) & (boxes[:, 2:] > boxes[:, :2]).all(1))
    kept: list[int] = []
    for row in rows[np.argsort(-confidences[rows], kind="stable")]:
        if all(overlap(boxes[row], boxes[other]) <= OVERLAP for other in kept):
            kept.append(int(row))
    return np.array(kept, dtype=int)


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union of two boxes, (4,) each."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    shared = float(np.prod(sides.clip(min=0)))
    whole = float(np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2])) - shared
    return shared / whole if whole > 0 else 0.0
