"""Image files: found below a folder, read as RGB, and compared byte for byte."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ldl.collective import process_rank
from ldl.errors import LDLError, naming
from ldl.validation.files import visible
from ldl.validation.pictures import decoded, open_picture, opening

SUFFIXES = (".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".webp", ".avif", ".tif", ".tiff", ".gif", ".ppm", ".pgm")


TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""Rotation or reflection that makes an image upright, by its EXIF orientation."""


def read_picture(path: Path) -> np.ndarray:
    """Read an image as RGB, (height, width, 3) uint8, rotated by its EXIF orientation.

    A grey image gets three equal channels, a 16-bit image keeps its upper eight bits, and a transparent image gets a
    white background. Raises LDLError for a missing, damaged or unknown file.
    """
    picture = open_picture(path)
    with naming(f"{path} cannot be read as an image"):
        return upright(picture)


def upright(picture: Image.Image) -> np.ndarray:
    """Convert a PIL image as :func:`read_picture` does.

    Raises LDLError for a damaged image, and for numbers of more than 16 bits.
    """
    turn = _turn(decoded(picture))
    picture = picture if turn is None else picture.transpose(turn)
    if picture.mode[0] in "IF":
        values = np.asarray(picture)
        low, high = values.min(), values.max()
        if picture.mode == "F" or low < 0 or high > 65535:
            raise LDLError(f"its numbers are {low:g} to {high:g} of mode {picture.mode}; save it with 8 or 16 bits")
        return np.repeat((values >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    if picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return np.asarray(picture.convert("RGB"))


def _turn(picture: Image.Image) -> Image.Transpose | None:
    # An image whose EXIF block is damaged stays as it is stored, as in viewers.
    try:
        orientation = picture.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # PIL and struct have no common exception
        return None
    return TURNS.get(orientation) if isinstance(orientation, int) else None


def list_pictures(folder: Path, beside: Collection[str] = ()) -> list[Path]:
    """Return the image files below a folder, sorted, without hidden files and folders.

    One printed line counts the other files by suffix.

    Args:
        folder: The folder, or a single image file.
        beside: Suffixes of other files that belong to the data set and are not counted.

    Raises:
        LDLError: There is no folder or no image.
    """
    if folder.is_file() and folder.suffix.lower() in SUFFIXES:
        return [folder]
    if not folder.is_dir():
        raise LDLError(f"no folder at {folder}; give the folder that holds the images")
    files = sorted(path for path in visible(folder, "**/*") if not path.is_dir())
    images = [path for path in files if path.suffix.lower() in SUFFIXES]
    others = Counter(path.suffix.lower() for path in files if path.suffix.lower() not in (*SUFFIXES, *beside))
    counted = ", ".join(f"{count:,} {name or 'without one'}" for name, count in others.most_common(8))
    if not images:
        raise LDLError(
            f"{folder} holds no images, but by ending {counted or 'nothing'}; {', '.join(SUFFIXES)} are read"
        )
    if counted and process_rank() == 0:
        print(f"left out of {folder}, by ending: {counted}; {len(images):,} images are read", flush=True)
    return images


def one_side(paths: Sequence[Path]) -> int:
    """Return the longer side in pixels of image files that have one size; files that cannot be read do not count.

    Raises LDLError for several sizes, or if no file can be read.
    """
    sizes: dict[tuple[int, int], Path] = {}
    for path in paths:
        with suppress(LDLError), opening(path) as opened:
            sizes.setdefault(opened.size, path)
    if len(sizes) != 1:
        several = " and ".join(f"{path} has {width}x{height}" for (width, height), path in list(sizes.items())[:2])
        raise LDLError(f"{several or 'no image can be read'}: give the size for all, such as --data.crop_size 128")
    return max(next(iter(sizes)))


def same_bytes(paths: Sequence[Path]) -> np.ndarray:
    """Return the row of the first file with the same bytes, (N,) int64; a file without a copy has its own row.

    Only files of equal size are read. Rows that name the same file, such as several faces of one photograph, are not
    copies of each other. A file that cannot be read has no copy.
    """
    rows_of: dict[Path, list[int]] = defaultdict(list)
    for row, path in enumerate(paths):
        rows_of[path].append(row)
    copies = np.arange(len(paths))
    for group in _alike(_alike([list(rows_of)], lambda path: path.stat().st_size), _digest):
        rows = sorted(row for path in group for row in rows_of[path])
        copies[rows] = rows[0]
    return copies


def units(copies: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Number the rows (N,) such that copies, and rows of one group, have the same number.

    Args:
        copies: (N,) equal for copies; see :func:`same_bytes`.
        groups: (N,) group of every row, such as the subject, or None.
    """
    if groups is None:
        return copies
    rows = np.arange(len(copies))
    firsts = [np.unique(numbers, return_index=True, return_inverse=True)[1:] for numbers in (copies, groups)]
    ends = np.concatenate([first[inverse] for first, inverse in firsts])
    edges = coo_array((np.ones(len(ends), bool), (np.tile(rows, 2), ends)), shape=(len(rows),) * 2)
    return np.asarray(connected_components(edges, directed=False)[1])


def describe(copies: np.ndarray, files: Sequence[str], values: np.ndarray | None = None) -> str:
    """Return a clause with the number of copies and the first example; empty if there are none.

    Args:
        copies: (N,), see :func:`same_bytes`.
        files: Name of each row.
        values: (N, ...) true value of every row, or None.
    """
    _, group, counts = np.unique(copies, return_inverse=True, return_counts=True)
    if not len(several := np.flatnonzero(counts > 1)):
        return ""
    rows = np.split(np.argsort(group, kind="stable"), np.cumsum(counts)[:-1])
    differing = "" if values is None else sum(len(np.unique(values[rows[number]], axis=0)) > 1 for number in several)
    first, second = rows[several[0]][:2]
    return (
        f"{counts[several].sum():,} of {len(copies):,} images are there more than once, byte for byte, in "
        f"{len(several):,} groups{f' ({differing:,} of them with different values)' if differing else ''}, such as "
        f"{files[first]} and {files[second]}"
    )


def _alike(groups: Iterable[list[Path]], key: Callable[[Path], Hashable]) -> list[list[Path]]:
    """Split the groups by a key, and return the parts with several files; a falsy key has no copies."""
    alike = []
    for group in groups:
        parts: dict[Hashable, list[Path]] = defaultdict(list)
        for path in group:
            with suppress(OSError):
                parts[key(path)].append(path)
        alike += [paths for value, paths in parts.items() if value and len(paths) > 1]
    return alike


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").digest()
