"""Files of probabilities: grey PNGs of 8 or 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from ldl.edges.benchmark.evaluation import read_edge_map, write_grey

STEPS = 65535
"""The number that stands for 1 in 16 bits."""


def write_probability(path: Path, probability: np.ndarray) -> None:
    """Write (H, W) in 0..1 as a grey PNG of 16 bits, with its folder. Raises LDLError for other values."""
    write_grey(path, np.asarray(probability, np.float64), np.uint16)


def read_probability(path: Path) -> tuple[np.ndarray, int]:
    """A grey PNG: (H, W) float64 in 0..1, and the number that stands for 1, 255 or 65535. Raises LDLError."""
    try:
        with Image.open(path) as picture:
            values = np.asarray(picture) if picture.mode.startswith("I;16") else None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        values = None  # said below
    return (read_edge_map(path), 255) if values is None else (values / STEPS, STEPS)
