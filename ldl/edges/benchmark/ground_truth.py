"""Files of the benchmark: ground truth in the layout of BSDS500, and edge maps as grey PNGs of 8 or 16 bits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from scipy.io import loadmat
from scipy.sparse import issparse

from ldl.errors import ANY_ERROR, LDLError, explaining
from ldl.validation.archive import check_mat
from ldl.validation.files import check_file
from ldl.validation.pictures import open_picture

ENDINGS = (".mat", ".png")
"""Endings of files of ground truth."""
MOST_PIXELS = 2**28
"""Maximum number of pixels of the sparse maps of a file, which become dense."""
GREY_STEPS = 65535
"""The number that stands for 1 in 16 bits."""


class GroundTruth(NamedTuple):
    """The drawings of the A annotators of one image of H x W pixels.

    Attributes:
        boundaries: (A, H, W) bool, lines one pixel wide between segments.
        segments: (A, H, W) int32, the number of each pixel's segment, from 1; None if the file has none.
    """

    boundaries: np.ndarray
    segments: np.ndarray | None


def truth_files(folder: Path) -> dict[str, Path]:
    """Return the ground truth of a folder by name: ``NAME.mat`` or ``NAME.png``. Raises LDLError for two of a name."""
    files: dict[str, Path] = {}
    for path in sorted(path for end in ENDINGS for path in folder.glob(f"[!.]*{end}")):
        if (first := files.setdefault(path.stem, path)) != path:
            raise LDLError(f"{folder} holds {first.name} and {path.name}, two ground truths of one image; remove one")
    return files


def truth_file(folder: Path, name: str) -> Path:
    """Return the ground truth of an image: ``NAME.png`` if only that exists, else ``NAME.mat``."""
    mat, png = (folder / f"{name}{end}" for end in ENDINGS)
    return png if png.is_file() and not mat.is_file() else mat


def read_ground_truth(path: Path) -> GroundTruth:
    """Read the drawings of annotators from a ``.mat`` or a ``.png`` file.

    A ``.mat`` file has ``groundTruth``, one cell per annotator, each with ``Boundaries`` and ``Segmentation``; maps may
    be sparse matrices. A ``.png`` file has one annotator: ground is 0, edges have one other grey level.

    Raises:
        LDLError: The file is missing or has another content, no annotators, maps of different sizes, or more edge than
            ground.
    """
    check_file(path, "ground truth", "correct its folder")
    if path.suffix == ".png":
        return _read_drawn(path)
    check_mat(path)
    with explaining(f"{path} cannot be read as a .mat file", errors=ANY_ERROR):
        variables = loadmat(path, variable_names=["groundTruth"])
    if "groundTruth" not in variables:
        raise LDLError(f"{path} has no variable groundTruth; a file of BSDS500's layout is needed")
    cells = variables["groundTruth"].ravel()
    if not len(cells):
        raise LDLError(f"{path} holds no annotators; leave the image out, or add at least one")
    names = [_fields_of(cell) for cell in cells]
    for number, fields in enumerate(names):
        if "Boundaries" not in fields:
            raise LDLError(f"{path}: annotator {number} has no Boundaries, but {', '.join(fields) or 'nothing'}")
    boundaries = _stack(path, "Boundaries", [cell["Boundaries"].ravel()[0] for cell in cells])
    segments = None
    if all("Segmentation" in fields for fields in names):
        segments = _stack(path, "Segmentation", [cell["Segmentation"].ravel()[0] for cell in cells])
        subject = f"{path}: Segmentation and Boundaries"
        check_same_size(subject, segments.shape[1:], boundaries.shape[1:], "take another copy")
    _check_share(path, boundaries)
    return GroundTruth(boundaries > 0, None if segments is None else segments.astype(np.int32))


def _fields_of(cell: Any) -> tuple[str, ...]:
    """Return the names of the fields of a structure; none for anything else."""
    is_filled = isinstance(cell, np.ndarray) and cell.size > 0
    return cell.dtype.names or () if is_filled else ()


def _read_drawn(path: Path) -> GroundTruth:
    _, values = _read_picture(path)
    if values.ndim != 2 or len(greys := np.unique(values)) > 2 or (len(greys) == 2 and greys[0] != 0):
        content = (
            f"of shape {values.shape}" if values.ndim != 2 else f"of {len(greys)} greys, from {greys[0]} to {greys[-1]}"
        )
        raise LDLError(f"{path} is {content}; ground truth as PNG is 0, and 255 where an edge is: save it so")
    _check_share(path, values[None])
    return GroundTruth(values[None] > 0, None)


def _read_picture(path: Path) -> tuple[str, np.ndarray]:
    """Return mode and values of an image; a colour image of three equal channels is (H, W), like a grey image."""
    picture = open_picture(path, "edge map", "replace it")
    mode, values = picture.mode, np.asarray(picture.convert("L") if picture.mode == "1" else picture)
    if values.ndim == 3 and (values == values[:, :, :1]).all():
        return mode, values[:, :, 0]
    return mode, values


def check_same_size(subject: str, shape: tuple[int, ...], other: tuple[int, ...], fix: str) -> None:
    """Raise LDLError with the ``subject`` and the ``fix`` if two images have other sizes, (H, W)."""
    if shape != other:
        sizes = " and ".join("x".join(map(str, sides)) for sides in (shape, other))
        raise LDLError(f"{subject} differ in size, {sizes} pixels; {fix}")


def _check_share(path: Path, boundaries: np.ndarray) -> None:
    """Raise LDLError if annotators have drawn more edge than ground."""
    if boundaries.size and (share := float((boundaries > 0).mean())) > 0.5:
        raise LDLError(
            f"{path}: {share:.0%} of the pixels are edges, as in an inverted map; edges are 1 and ground is 0"
        )


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


def paired(pred: Path, gt: Path) -> list[str]:
    """Return the names that both folders have, ``NAME.png`` and the ground truth of ``NAME``. Raises LDLError."""
    maps, truth = {file.stem for file in pred.glob("[!.]*.png")}, set(truth_files(gt))
    for folder, named, end in ((gt, truth, ".mat or .png"), (pred, maps, ".png")):
        if not named:
            raise LDLError(f"{folder} {f'holds no {end} files' if folder.is_dir() else 'is no folder'}")
    if missing := sorted(truth - maps):
        raise LDLError(f"{pred} has no {missing[0]}.png ({len(missing)} of {len(truth)} images have no edge map)")
    if unknown := sorted(maps - truth):
        raise LDLError(f"{gt} has no {unknown[0]}.mat ({len(unknown)} of {len(maps)} edge maps have no ground truth)")
    return sorted(truth)


def read_edge_map(path: Path) -> np.ndarray:
    """Read a PNG of 8 bits, grey or with three equal channels, as (H, W) float64 in 0..1. Raises LDLError."""
    mode, values = _read_picture(path)
    if mode not in ("1", "L", "RGB") or values.ndim != 2:
        kind = "has 16 bits or more" if mode.startswith(("I", "F")) else f"is an image of mode {mode}"
        raise LDLError(f"{path} {kind}; save edge maps as grey PNG of 8 bits, where 255 is the most certain edge")
    return values / 255


def read_probability(path: Path) -> tuple[np.ndarray, int]:
    """Read a grey PNG: (H, W) float64 in 0..1, and the number that stands for 1, 255 or 65535. Raises LDLError."""
    picture = open_picture(path, "edge map", "replace it")
    if picture.mode.startswith("I;16"):
        return np.asarray(picture) / GREY_STEPS, GREY_STEPS
    return read_edge_map(path), 255


def check_edge_map(path: Path, strength: np.ndarray, meant: str) -> None:
    """Raise LDLError for a map (H, W) of 0 and 1 in steps of 8 bits, or with more edge than ground: a likely mistake.

    ``meant`` is the advice for a map that is correct.
    """
    if strength.any() and set(np.unique(strength)) <= {0, 1 / 255}:
        raise LDLError(f"{path} holds 0 and 1, where 255 is the most certain edge: multiply it by 255; {meant}")
    if (share := float((strength > 0.5).mean())) > 0.5:
        raise LDLError(f"{path}: {share:.0%} of the pixels are surer edges than not, as in an inverted map; {meant}")


def write_edge_map(path: Path, strength: np.ndarray) -> None:
    """Write (H, W) in 0..1 as a grey PNG of 8 bits, with its folder.

    Raises LDLError for values outside of 0..1 by more than rounding.
    """
    steps = np.round(255.0 * np.asarray(strength))
    if not ((steps >= 0) & (steps <= 255)).all():
        low, high = np.min(strength), np.max(strength)
        raise LDLError(f"{path}: the values of a map must be in 0..1, these reach from {low:g} to {high:g}")
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(steps.astype(np.uint8)).save(path)
