"""What annotators drew: the ground truth files of BSDS500 and of data sets with its layout."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.io import loadmat
from scipy.sparse import issparse

from ldl.errors import LDLError
from ldl.trust.archive import check_mat

MOST_PIXELS = 2**28
"""Of the sparse maps of a file, which become full ones."""


class GroundTruth(NamedTuple):
    """What the A annotators of one image of H x W pixels drew.

    Attributes:
        boundaries: (A, H, W) bool, lines one pixel wide between segments.
        segments: (A, H, W) int32, the number of each pixel's segment, from 1; None where the file has none.
    """

    boundaries: np.ndarray
    segments: np.ndarray | None


def read_ground_truth(path: Path) -> GroundTruth:
    """Read a ``.mat`` file: ``groundTruth``, one cell an annotator, each with ``Boundaries`` and ``Segmentation``.

    Maps may be sparse matrices.

    Raises:
        LDLError: no such file, another content, no annotators, or annotators whose maps differ in size.
    """
    if not path.is_file():
        raise LDLError(f"no ground truth at {path}")
    try:
        check_mat(path)
        cells = loadmat(path, variable_names=["groundTruth"])["groundTruth"].ravel()
    except KeyError:
        raise LDLError(f"{path} has no variable groundTruth; a file of BSDS500's layout is needed") from None
    except Exception as error:  # those of scipy, zlib and struct have no common base
        raise LDLError(f"{path} cannot be read as a .mat file: {' '.join(str(error).split())[:160]}") from error
    if not len(cells):
        raise LDLError(f"{path} holds no annotators; leave the image out, or give at least one")
    names = [cell.dtype.names or () if isinstance(cell, np.ndarray) and cell.size else () for cell in cells]
    for number, fields in enumerate(names):
        if "Boundaries" not in fields:
            raise LDLError(f"{path}: annotator {number} has no Boundaries, but {', '.join(fields) or 'nothing'}")
    boundaries = _stack(path, "Boundaries", [cell["Boundaries"].ravel()[0] for cell in cells])
    segments = None
    if all("Segmentation" in fields for fields in names):
        segments = _stack(path, "Segmentation", [cell["Segmentation"].ravel()[0] for cell in cells])
        if segments.shape != boundaries.shape:
            raise LDLError(
                f"{path}: Segmentation is {segments.shape[1]}x{segments.shape[2]} pixels, "
                f"Boundaries {boundaries.shape[1]}x{boundaries.shape[2]}"
            )
    return GroundTruth(boundaries > 0, None if segments is None else segments.astype(np.int32))


def _stack(path: Path, name: str, maps: list[Any]) -> np.ndarray:
    if (size := sum(math.prod(drawn.shape) for drawn in maps if issparse(drawn))) > MOST_PIXELS:
        raise LDLError(f"{path}: {name} are sparse matrices of {size} pixels in all, {MOST_PIXELS} at most are read")
    maps = [drawn.toarray() if issparse(drawn) else drawn for drawn in maps]
    for number, drawn in enumerate(maps):
        if drawn.ndim != 2 or not drawn.size:
            raise LDLError(f"{path}: {name} of annotator {number} has shape {drawn.shape}, not (height, width)")
        if drawn.shape != maps[0].shape:
            sizes = " and ".join(f"{shape[0]}x{shape[1]}" for shape in (maps[0].shape, drawn.shape))
            raise LDLError(f"{path}: {name} of annotators 0 and {number} differ in size, {sizes} pixels")
    return np.stack(maps)
