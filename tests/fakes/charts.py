"""What charts are drawn of, and what is read from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.image import imread

from ldl.labels import LabelSpace

SPACES = {
    "nominal": LabelSpace.nominal(["happy", "sad", "angry", "calm"]),
    "many names": LabelSpace.nominal([f"name {k}" for k in range(130)]),
    "ordinal": LabelSpace.ordinal(range(101), "years"),
    "one value": LabelSpace.ordinal([3.0]),
    "grid": LabelSpace.grid([-30, 0, 30], [-20, -10, 0, 10], "degrees"),
    "some of a grid": LabelSpace.grid([0, 1], [0, 1, 2], "", ("up", "across"), [(0, 0), (1, 0), (1, 2)]),
}
AGES = SPACES["ordinal"]


def colors(path: Path) -> np.ndarray:
    """The pixels (H, W, 3) of an image that is not of one colour, from 0 to 1."""
    image = imread(path)[..., :3]
    assert image.std() > 0.01
    return image


def size(path: Path) -> tuple[int, int]:
    """Height and width of an image that is not of one colour."""
    height, width, _ = colors(path).shape
    return height, width


def ages(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True values, decoded values and distributions."""
    rng = np.random.default_rng(0)
    true = rng.uniform(0, 100, count)
    predicted = np.clip(true + rng.normal(0, 5, count), 0, 100)
    distribution = np.exp(-((np.arange(101) - predicted[:, None]) ** 2) / 50)
    return true, predicted, distribution / distribution.sum(1, keepdims=True)


def red_and_blue(count: int) -> np.ndarray:
    """Pictures, red and blue by turns."""
    pictures = np.zeros((count, 40, 30, 3), np.uint8)
    pictures[::2, ..., 0] = pictures[1::2, ..., 2] = 255
    return pictures
