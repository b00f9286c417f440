"""Small trees in the layout of BSDS500."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat


def write_truth(path: Path, boundaries: list[np.ndarray], segments: list[np.ndarray] | None = None) -> Path:
    """A ground truth file: a row of cells, each a structure of two maps."""
    cells = np.empty((1, len(boundaries)), object)
    for number, drawn in enumerate(boundaries):
        numbered = np.ones(drawn.shape) if segments is None else segments[number]
        cells[0, number] = {"Segmentation": numbered.astype(np.uint16), "Boundaries": drawn.astype(np.uint8)}
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"groundTruth": cells}, do_compression=True)
    return path


def scene(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """A bright disc on dark ground; three annotators draw its rim, each a little differently, the last only half."""
    height, width = shape
    y, x = np.mgrid[:height, :width]
    centre, radius = rng.uniform(0.4, 0.6, 2) * shape, 0.3 * min(shape)
    distance = np.hypot(y - centre[0], x - centre[1])
    picture = np.where(distance[..., None] < radius, [200, 180, 60], [40, 60, 90]) + rng.normal(0, 5, (*shape, 3))
    segments = [1 + (distance < radius + shift) for shift in (0, 0.7, -0.7)]
    boundaries = [inner & ~_eroded(inner) for inner in (number == 2 for number in segments)]
    boundaries[2] &= x < centre[1]
    return picture.clip(0, 255).astype(np.uint8), boundaries, segments


def bsds(root: Path, parts: dict[str, int] | None = None, shape: tuple[int, int] = (48, 64)) -> Path:
    """``images/PART/NAME.jpg`` and ``groundTruth/PART/NAME.mat``; every second image stands upright."""
    rng = np.random.default_rng(0)
    number = 1000
    for part, count in (parts or {"train": 3, "val": 2, "test": 2}).items():
        for turn in range(count):
            number += 1
            picture, boundaries, segments = scene(rng, shape if turn % 2 == 0 else shape[::-1])
            folder = root / "images" / part
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"{number}.jpg")
            write_truth(root / "groundTruth" / part / f"{number}.mat", boundaries, segments)
    return root


def _eroded(mask: np.ndarray) -> np.ndarray:
    padded = np.pad(mask, 1)
    return padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
