"""Face detectors: MTCNN, and ONNX files with the outputs of YuNet or UltraFace."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from ldl.data.images.locators import Detector
from ldl.errors import LDLError, some
from ldl.faces.lists import upright_corners
from ldl.validation.files import check_file

BOX_POINTS = np.array([[0.286, 0.397], [0.753, 0.391], [0.518, 0.610], [0.325, 0.768], [0.721, 0.764]])
"""Landmarks as shares of a box drawn as in WIDER FACE, from hairline to chin.

Medians of MTCNN's landmarks in MTCNN's boxes over every fourth image of FG-NET."""

LONGER_SIDE, STEP = 640, 32
"""Longer side of the input of an ONNX file that takes any size, in multiples of ``STEP`` pixels."""

OVERLAP = 0.3
"""Boxes with a larger intersection over union are the same face."""

SMALLEST, SHARE = 20, 50
"""MTCNN's narrowest face: 20 pixels or a fiftieth of the longer side, since the work grows with its square."""

STRIDES = (8, 16, 32)
"""Strides of YuNet's three feature maps."""


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


def find_detector(given: str | Path) -> Detector:
    """Return the detector ``mtcnn``, or that of an ONNX file. Raises LDLError."""
    if str(given) == "mtcnn":
        return MTCNN()
    if str(given).lower().endswith(".onnx"):
        return OnnxDetector(Path(given))
    raise LDLError(f"no detector {str(given)!r}; give mtcnn, or the path of an ONNX file that ends in .onnx")


def _sorted_faces(boxes: np.ndarray, confidences: np.ndarray, points: np.ndarray | None) -> list[Face]:
    order = np.lexsort((boxes[:, 1], boxes[:, 0]))
    return [Face(boxes[row], float(confidences[row]), None if points is None else points[row]) for row in order]


class MTCNN:
    """MTCNN (Zhang et al., IEEE Signal Processing Letters 2016) from facenet-pytorch, with landmarks, on the CPU.

    Faces narrower than 20 pixels, or than a fiftieth of the image's longer side, are not detected.

    Raises:
        LDLError: facenet-pytorch is not installed.
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
        """Return the faces of an image (H, W, 3) uint8 RGB, from left to right."""
        height, width = picture.shape[:2]
        smallest = max(SMALLEST, max(height, width) // SHARE)
        if min(height, width) < smallest:
            return []  # the cascade would have no scale, and fail
        self._cascade.min_face_size = smallest
        boxes, confidences, points = self._cascade.detect(picture, landmarks=True)
        if boxes is None or boxes[0] is None:
            return []
        return _sorted_faces(*(np.asarray(found, dtype=float) for found in (boxes, confidences, points)))


Outputs = Mapping[str, np.ndarray]
Decoded = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Layout:
    """Inputs and outputs of a kind of detector.

    Attributes:
        name: Its name.
        outputs: Names of the outputs.
        bgr: Whether the channels are blue, green, red.
        mean: Subtracted from pixels in 0..255.
        scale: Divisor after that.
        least: Least confidence of a face, as recommended by the authors.
        decode: Maps the outputs for an image of (height, width) to boxes (n, 4), confidences (n,), and points
            (n, 5, 2) or None, in pixels of that image.
    """

    name: str
    outputs: tuple[str, ...]
    bgr: bool
    mean: float
    scale: float
    least: float
    decode: Callable[[Outputs, tuple[int, int]], Decoded]


def _decode_yunet(outputs: Outputs, size: tuple[int, int]) -> Decoded:
    boxes, confidences, points = [], [], []
    for stride in STRIDES:
        rows, columns = size[0] // stride, size[1] // stride
        cells = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2)
        box, point = outputs[f"bbox_{stride}"].reshape(-1, 4), outputs[f"kps_{stride}"].reshape(-1, 5, 2)
        centre, half = cells + box[:, :2], np.exp(box[:, 2:].clip(max=10)) / 2
        boxes.append(np.concatenate([centre - half, centre + half], axis=1) * stride)
        points.append((cells[:, None] + point) * stride)
        scores = [outputs[f"{name}_{stride}"].ravel().clip(0, 1) for name in ("cls", "obj")]
        confidences.append(np.sqrt(np.prod(scores, axis=0)))
    return np.concatenate(boxes), np.concatenate(confidences), np.concatenate(points)


def _decode_ultraface(outputs: Outputs, size: tuple[int, int]) -> Decoded:
    height, width = size
    boxes, scores = outputs["boxes"].reshape(-1, 4), outputs["scores"].reshape(-1, 2)
    return boxes * [width, height, width, height], scores[:, 1], None


LAYOUTS = (
    # Wu, Peng & Yu, Machine Intelligence Research 2023.
    Layout(
        "YuNet",
        tuple(f"{name}_{stride}" for name in ("cls", "obj", "bbox", "kps") for stride in STRIDES),
        True,
        0.0,
        1.0,
        0.6,
        _decode_yunet,
    ),
    # Ultra-Light-Fast-Generic-Face-Detector.
    Layout("UltraFace", ("scores", "boxes"), False, 127.0, 128.0, 0.7, _decode_ultraface),
)


class OnnxDetector:
    """A detector in an ONNX file with the inputs and outputs of YuNet (OpenCV's zoo) or UltraFace, on the CPU.

    Args:
        path: The file.

    Raises:
        LDLError: The file is missing, is no ONNX or has another layout, or onnxruntime is not installed.
    """

    def __init__(self, path: Path) -> None:
        check_file(path, "detector", "give mtcnn, or a detector's ONNX file")
        try:
            import onnxruntime
        except ImportError:
            raise LDLError(f"detector {path} needs onnxruntime: pip install 'ldl[faces]'") from None
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # older files give one warning per weight
        content = path.read_bytes()
        try:
            self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no common base
            raise LDLError(f"{path} cannot be read as ONNX: {' '.join(str(error).split())[:160]}") from None
        self.name, self.key = path.name, hashlib.sha256(content).hexdigest()[:20]
        self._layout, (self._height, self._width) = _find_layout(path, self._session)

    def __call__(self, picture: np.ndarray) -> list[Face]:
        """Return the faces of an image (H, W, 3) uint8 RGB, from left to right. Raises LDLError if the file fails."""
        scale, canvas = self._fit(picture)
        pixels = (canvas[:, :, ::-1] if self._layout.bgr else canvas).astype(np.float32)
        pixels = (pixels - np.float32(self._layout.mean)) / np.float32(self._layout.scale)
        feed = {self._session.get_inputs()[0].name: np.ascontiguousarray(pixels.transpose(2, 0, 1))[None]}
        try:
            outputs = dict(zip(self._layout.outputs, self._session.run(list(self._layout.outputs), feed)))
            boxes, confidences, points = self._layout.decode(outputs, canvas.shape[:2])
        except Exception as error:  # as above
            reason = " ".join(str(error).split())[:160]
            raise LDLError(f"detector {self.name} fails on an image of {canvas.shape[:2]} pixels: {reason}") from None
        kept = distinct(boxes, confidences, self._layout.least)
        return _sorted_faces(boxes[kept] / scale, confidences[kept], None if points is None else points[kept] / scale)

    def _fit(self, picture: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a scale, and the scaled image padded with black on the right and below to the size of the input."""
        height, width = picture.shape[:2]
        limits = (self._height or LONGER_SIDE, self._width or LONGER_SIDE)
        scale = min(limits[0] / height, limits[1] / width)
        scale = scale if self._height and self._width else min(1.0, scale)
        small = max(1, round(height * scale)), max(1, round(width * scale))
        sides = (self._height or -(-small[0] // STEP) * STEP, self._width or -(-small[1] // STEP) * STEP)
        canvas = np.zeros((*sides, 3), np.uint8)
        canvas[: small[0], : small[1]] = cv2.resize(picture, small[::-1], interpolation=cv2.INTER_AREA)
        return scale, canvas


def _find_layout(path: Path, session: Any) -> tuple[Layout, tuple[int | None, int | None]]:
    """Return the layout of a file and the height and width of its input, None for any."""
    inputs, names = session.get_inputs(), {output.name for output in session.get_outputs()}
    for layout in LAYOUTS:
        if len(inputs) == 1 and len(inputs[0].shape) == 4 and names.issuperset(layout.outputs):
            height, width = (side if isinstance(side, int) and side > 0 else None for side in inputs[0].shape[2:])
            return layout, (height, width)
    known = " or ".join(f"{layout.name} ({', '.join(layout.outputs[:4])})" for layout in LAYOUTS)
    raise LDLError(
        f"{path} is no detector of a known layout: it has outputs {some(sorted(names))}; give mtcnn, or a file with "
        f"one image (1, 3, H, W) in and the outputs of {known}"
    )


def distinct(boxes: np.ndarray, confidences: np.ndarray, least: float) -> np.ndarray:
    """Return the rows of boxes (n, 4) with at least ``least`` confidence that non-maximum suppression keeps."""
    from torchvision.ops import nms  # type: ignore[import-untyped]  # takes a second

    rows = np.flatnonzero((confidences >= least) & np.isfinite(boxes).all(1) & (boxes[:, 2:] > boxes[:, :2]).all(1))
    kept = nms(torch.from_numpy(boxes[rows]).double(), torch.from_numpy(confidences[rows]).double(), OVERLAP)
    return rows[kept.numpy()]
