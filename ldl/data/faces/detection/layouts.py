"""What the outputs of known face detectors mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Outputs = Mapping[str, np.ndarray]
Decoded = tuple[np.ndarray, np.ndarray, np.ndarray | None]

STRIDES = (8, 16, 32)
"""Pixels between the cells of YuNet's three maps."""


@dataclass(frozen=True)
class Layout:
    """How a kind of detector is fed, and read.

    Attributes:
        name: What it is called.
        outputs: Names of the outputs.
        bgr: Whether channels go from blue to red.
        mean: Taken from pixels, which are 0..255.
        scale: What they are divided by then.
        least: Confidence of a face.
        decode: From the outputs of a picture of (height, width) to boxes (n, 4), confidences (n,), and points
            (n, 5, 2) or None, in pixels of that picture.
    """

    name: str
    outputs: tuple[str, ...]
    bgr: bool
    mean: float
    scale: float
    least: float
    decode: Callable[[Outputs, tuple[int, int]], Decoded]


def _yunet(outputs: Outputs, size: tuple[int, int]) -> Decoded:
    """YuNet (Wu, Peng & Yu, Machine Intelligence Research 2023): offsets from cells, in strides."""
    boxes, confidences, points = [], [], []
    for stride in STRIDES:
        rows, columns = size[0] // stride, size[1] // stride
        cells = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2)
        box, point = outputs[f"bbox_{stride}"].reshape(-1, 4), outputs[f"kps_{stride}"].reshape(-1, 5, 2)
        centre, half = cells + box[:, :2], np.exp(box[:, 2:].clip(max=10)) / 2
        boxes.append(np.concatenate([centre - half, centre + half], axis=1) * stride)
        points.append((cells[:, None] + point) * stride)
        confidences.append(np.sqrt(np.prod([outputs[f"{name}_{stride}"].ravel().clip(0, 1) for name in _SURE], axis=0)))
    return np.concatenate(boxes), np.concatenate(confidences), np.concatenate(points)


def _ultraface(outputs: Outputs, size: tuple[int, int]) -> Decoded:
    """Ultra-Light-Fast-Generic-Face-Detector: corners as shares of the picture; scores of no face, and of one."""
    height, width = size
    boxes, scores = outputs["boxes"].reshape(-1, 4), outputs["scores"].reshape(-1, 2)
    return boxes * [width, height, width, height], scores[:, 1], None


_SURE = ("cls", "obj")
_YUNET = tuple(f"{name}_{stride}" for name in (*_SURE, "bbox", "kps") for stride in STRIDES)

LAYOUTS = (
    Layout("YuNet", _YUNET, True, 0.0, 1.0, 0.6, _yunet),
    Layout("UltraFace", ("scores", "boxes"), False, 127.0, 128.0, 0.7, _ultraface),
)
"""Confidences are those that their authors use."""
