"""Small trees of made-up pictures, in exactly the layouts of MNIST, as Keras has it, and BSDS500."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

EACH = 30


def mnist(root: Path, each: int = EACH) -> Path:
    """``mnist.npz``: ``each`` written digits of every kind for training and two for tests, below ``root``."""
    arrays = {}
    for part, count, seed in (("train", each, 0), ("test", 2, 1)):
        digits = np.random.default_rng(seed).permutation(np.repeat(np.arange(10), count)).astype(np.uint8)
        arrays[f"x_{part}"] = np.stack([_written(int(digit), number) for number, digit in enumerate(digits)])
        arrays[f"y_{part}"] = digits
    np.savez(root / "mnist.npz", **arrays)
    return root


def bsds(root: Path) -> Path:
    """``BSDS500``: three photographs of coarse blocks in each of its parts, wide and high, below ``root``."""
    for number in range(9):
        folder = root / "BSDS500" / "data" / "images" / ("train", "val", "test")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        shape = (5, 8, 3) if number % 2 else (8, 5, 3)
        blocks = np.random.default_rng(number).integers(0, 256, shape, dtype=np.uint8)
        assert cv2.imwrite(str(folder / f"{100 + number}.jpg"), blocks.repeat(15, 0).repeat(15, 1))
    return root


def _written(digit: int, number: int) -> np.ndarray:
    picture = np.zeros((28, 28), np.uint8)
    shift = np.random.default_rng(number).integers(-1, 2, 2)
    cv2.putText(picture, str(digit), (6 + int(shift[0]), 22 + int(shift[1])), cv2.FONT_HERSHEY_SIMPLEX, 0.8, 255, 2)
    return picture
