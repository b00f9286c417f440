"""Landmark files of 68 points."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.data.files import read_text
from ldl.errors import LDLError

# Centres of the eye on the left and on the right of the picture, tip of the nose, corners of the mouth.
FGNET_POINTS = (31, 36, 67, 48, 54)


def read_points(path: Path) -> np.ndarray:
    """The points of a ``.pts`` file, (n, 2), in pixels with the origin at the upper left.

    Raises:
        LDLError: no such file, or not as many pairs of numbers between braces as ``n_points`` says.
    """
    text = read_text(path, "landmarks", "give --data.alignment box or none to do without")
    try:
        header, _, rest = text.partition("{")
        points = np.array(rest.partition("}")[0].split(), dtype=float).reshape(-1, 2)
        count = int(header.partition("n_points:")[2].split()[0])
    except (ValueError, IndexError) as error:
        raise LDLError(f"{path} cannot be read as landmarks: {' '.join(str(error).split())}") from None
    if len(points) != count or not np.isfinite(points).all():
        raise LDLError(f"{path} has {len(points)} finite points, but says n_points: {count}")
    return points
