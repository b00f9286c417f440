"""Crops of images: locate the face by landmarks or a box, or take the whole image, crop it, and cache the crops."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from filelock import FileLock
from numpy.lib.format import open_memmap

from ldl.checkpoint import replacing
from ldl.collective import process_rank
from ldl.data.cache import retried
from ldl.data.images.records import ImageRecords
from ldl.data.pictures import read_picture, same_bytes
from ldl.errors import LDLError
from ldl.jobs.executors import processors

# Mean positions in the unit square that the inner face of dlib's 68-point mean shape spans: centres of both eyes, tip
# of the nose, both corners of the mouth. UTKFace's crops were made from that shape with a margin of 0.2.
FACE_POINTS = np.array([[0.2255, 0.216], [0.7548, 0.216], [0.490, 0.516], [0.254, 0.780], [0.726, 0.780]])
BOX_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
LANDMARK_MARGIN = 0.2
MAX_MISFIT = 0.85
"""Largest misfit of landmarks. FG-NET's are at most 0.1, and at least 0.93 with x and y or left and right exchanged."""

_VERSION = 1
"""Part of the cache key: raise it when the same arguments give other crops."""


def similarity(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the (2, 3) matrix of rotation, scale and translation that maps ``source`` closest to ``target``.

    Points are (n, 2) each; least squares without reflection (Umeyama, PAMI 1991). Raises LDLError if they coincide.
    """
    source_mean, target_mean = source.mean(0), target.mean(0)
    from_, to = source - source_mean, target - target_mean
    spread = (from_**2).sum()
    if not np.isfinite(spread) or spread < 1e-12:
        raise LDLError(f"landmarks {source.round(1).tolist()} do not place a face; they must be distinct points")
    # In two dimensions the best rotation and scale are one complex number.
    real, imaginary = (from_ * to).sum() / spread, (from_[:, 0] * to[:, 1] - from_[:, 1] * to[:, 0]).sum() / spread
    turn = np.array([[real, -imaginary], [imaginary, real]])
    return np.concatenate([turn, (target_mean - turn @ source_mean)[:, None]], axis=1)


def placement(anchor: np.ndarray | None, width: int, height: int, size: int, margin: float | None) -> np.ndarray:
    """Return the (2, 3) matrix from pixels of an image to pixels of its square crop.

    Args:
        anchor: (5, 2) eyes, nose and corners of the mouth as in ``FACE_POINTS``; (4, 2) corners of a box, clockwise
            from the face's upper left; or None to fit the whole image into the crop.
        width: Width of the image.
        height: Height of the image.
        size: Side of the crop.
        margin: Margin on every side, as a share of the face's square; None adds ``LANDMARK_MARGIN`` to landmarks and
            nothing to boxes, which already have one.

    Raises:
        LDLError: The points do not locate a face in such an image.
    """
    if anchor is None:
        side = max(width, height)
        anchor, margin = np.array([width - side, height - side]) / 2 + side * BOX_CORNERS - 0.5, 0.0
    if anchor.shape not in ((5, 2), (4, 2)):
        raise LDLError(f"a face is placed by 5 landmarks or 4 corners of a box, got points of shape {anchor.shape}")
    _check_plausible(anchor, width, height)
    template, usual = (FACE_POINTS, LANDMARK_MARGIN) if len(anchor) == 5 else (BOX_CORNERS, 0.0)
    margin = usual if margin is None else margin
    return similarity(anchor, size * (margin + template) / (1 + 2 * margin) - 0.5)


def _check_plausible(anchor: np.ndarray, width: int, height: int) -> None:
    """Raise LDLError, with the likely cause, for points that cannot be pixels of a face in an image of this size."""
    kind, top = ("box" if len(anchor) == 4 else "landmarks"), anchor[1] - anchor[0]
    culprit = f"the {kind} {anchor.round(2).tolist()} in an image of {width}x{height}"
    x, y = anchor.T
    area = (x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2
    if anchor.min() >= 0 and anchor.max() <= 1 and np.ptp(anchor) > 0:
        raise LDLError(f"{culprit}: shares of its sides, not pixels? multiply x by {width} and y by {height}")
    if kind == "box" and area <= 0:
        raise LDLError(
            f"{culprit} is mirrored or empty; its corners go clockwise, x before y, from the face's upper left"
        )
    if kind == "box" and top[0] < 0 and top[1] == 0:
        raise LDLError(f"{culprit} is upside down; its corners begin with the face's upper left: exchange them")
    if ((centre := anchor.mean(0)) < -0.5).any() or (centre > (width, height)).any():
        raise LDLError(f"{culprit} lies outside of it; points are x, y in pixels of the image, rotated upright")
    if kind == "landmarks" and _misfit(anchor) > MAX_MISFIT:
        raise LDLError(
            f"{culprit} are no face; x before y, eyes, nose, mouth's corners, each from left to right in the image"
        )


def _misfit(points: np.ndarray) -> float:
    """Return the share of the variance of ``FACE_POINTS`` that no similarity transform of ``points`` explains."""
    matrix = similarity(points, FACE_POINTS)
    away = points @ matrix[:, :2].T + matrix[:, 2] - FACE_POINTS
    return float((away**2).sum() / ((FACE_POINTS - FACE_POINTS.mean(0)) ** 2).sum())


def crop(picture: np.ndarray, anchor: np.ndarray | None, size: int, margin: float | None) -> np.ndarray:
    """Return the aligned face of an image, (size, size, 3) uint8 from (height, width, 3); see :func:`placement`.

    Beyond the image its border is repeated. Raises LDLError, also for an image too large for OpenCV.
    """
    height, width = picture.shape[:2]
    matrix = placement(anchor, width, height, size, margin)
    shrink = 1 / np.hypot(matrix[0, 0], matrix[1, 0])
    if shrink >= 2:
        # A warp samples only a few pixels: shrink by averaging first, or fine texture becomes noise.
        reduced = (max(1, round(width / int(shrink))), max(1, round(height / int(shrink))))
        picture = cv2.resize(picture, reduced, interpolation=cv2.INTER_AREA)
        scale = np.array([width / reduced[0], height / reduced[1]])
        shifted = matrix[:, 2] + matrix[:, :2] @ (scale * 0.5 - 0.5)
        matrix = np.concatenate([matrix[:, :2] * scale, shifted[:, None]], axis=1)
    if max(picture.shape) >= 2**15 - 1:
        raise LDLError(f"an image of {width}x{height} cannot be cropped by OpenCV; make it smaller")
    return cv2.warpAffine(picture, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


@dataclass
class Crops:
    """Aligned crops of a list of images, (N, size, size, 3) uint8, in a memory-mapped file.

    Attributes:
        file: The file.
        key: Cache key of everything the crops depend on.
        failed: By row, why an image could not be read.
    """

    file: Path
    key: str
    failed: dict[int, str]
    _array: np.ndarray | None = field(default=None, init=False)

    def __getitem__(self, row: int) -> np.ndarray:
        if self._array is None:
            self._array = np.load(self.file, mmap_mode="r", allow_pickle=False)
        return np.asarray(self._array[row])

    def __getstate__(self) -> dict[str, Any]:
        # Pickling a memory map would copy all crops; a loader process opens the file itself.
        return {**self.__dict__, "_array": None}

    def copies(self, paths: Sequence[Path]) -> np.ndarray:
        """Return :func:`ldl.data.pictures.same_bytes` of the images, from the cache if possible."""
        file = _copies_file(self.file)
        with FileLock(self.file.with_suffix(".lock")):
            if not file.is_file():
                with replacing(file) as stream:
                    np.save(stream, same_bytes(paths))
        return np.load(file, allow_pickle=False)


def _copies_file(crops: Path) -> Path:
    return crops.with_suffix(".copies.npy")


def readable(failed: dict[int, str], count: int) -> np.ndarray:
    """Return the rows of ``count`` images that did not fail, and print the others. Raises LDLError if all failed."""
    if len(failed) == count:
        raise LDLError(f"not one of {count} images can be read, the first: {failed[0]}")
    if failed and process_rank() == 0:
        print(f"left out {len(failed)} of {count} unreadable images:")
        print("\n".join(f"  {reason}" for reason in failed.values()), flush=True)
    return np.setdiff1d(np.arange(count), list(failed))


def cached_crops(records: ImageRecords, size: int, margin: float | None, cache: Path) -> Crops:
    """Return the crops of all images, from the cache if possible.

    The key covers every image's path, size and modification time, its anchor, and the options. Images that an earlier
    run could not read are tried again. Concurrent processes wait for the first one.

    Args:
        records: The images.
        size: Side of the crops in pixels.
        margin: See :func:`placement`.
        cache: Root of the cache.

    Raises:
        LDLError: The cache cannot be written.
    """
    digest = hashlib.sha256(f"{_VERSION} {size} {margin!r} {records.folder.resolve()}".encode())
    for row, (file, path) in enumerate(zip(records.files, records.paths())):
        anchor = records.anchor(row)
        digest.update(f"|{file} {file_state(path)}".encode())
        digest.update(b"" if anchor is None else anchor.astype(float).tobytes())
    key = digest.hexdigest()[:20]
    crops = cache / "crops" / f"{key}.npy"
    failures = crops.with_suffix(".json")
    if failures.is_file() and not crops.is_file():
        failures.unlink()

    def make(rows: Sequence[int]) -> bytes:
        if len(rows) == len(records):
            print(f"cropping {len(records)} images to {size}x{size} into {crops.parent}", flush=True)
        _copies_file(crops).unlink(missing_ok=True)
        return json.dumps(_fill(crops, records, rows, size, margin)).encode()

    with retried(failures, len(records), make, lambda content: list(_failures(content))):
        return Crops(crops, key, _failures(failures.read_bytes()))


def file_state(path: Path) -> tuple[int, int]:
    """Return size and modification time of a file, or (-1, -1) if it cannot be found; part of cache keys."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _failures(content: bytes) -> dict[int, str]:
    return {int(row): reason for row, reason in json.loads(content).items()}


def _fill(file: Path, records: ImageRecords, rows: Sequence[int], size: int, margin: float | None) -> dict[int, str]:
    """Write the crops of some images into the file, and return by row why images cannot be read."""
    failed: dict[int, str] = {}
    if len(rows) == len(records):
        open_memmap(file, mode="w+", dtype=np.uint8, shape=(len(records), size, size, 3))
        if hasattr(os, "posix_fallocate"):
            # A memory map is sparse, and writing to it on a full disk kills the process.
            with file.open("r+b") as opened:
                os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
    array = open_memmap(file, mode="r+")

    def make(row: int) -> None:
        path = records.folder / records.files[row]
        try:
            array[row] = crop(read_picture(path), records.anchor(row), size, margin)
        except LDLError as error:
            failed[row] = str(error) if str(path) in str(error) else f"{path}: {error}"

    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with ThreadPoolExecutor(processors()) as pool:
            list(pool.map(make, rows))
    finally:
        cv2.setNumThreads(threads)
    array.flush()
    return dict(sorted(failed.items()))
