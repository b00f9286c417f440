"""Aligned crops, made once and kept on disk under a key of what made them."""

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

from ldl.cells.processors import processors
from ldl.checkpoint import replacing
from ldl.collective import process_rank
from ldl.data.cache import of_earlier_run
from ldl.data.faces.align import crop
from ldl.data.faces.records import FaceRecords
from ldl.data.pictures import read_picture
from ldl.errors import LDLError

_VERSION = 1
"""Part of the key: raise it when the same arguments give other crops."""


@dataclass
class Crops:
    """Aligned crops of a list of pictures, (N, size, size, 3) uint8, read from disk as they are needed.

    Attributes:
        file: Where they lie.
        key: What made them, in one word.
        failed: Why each unreadable picture could not be read, by row.
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
        # A loader process opens the file itself; a memory map would be pickled as a copy of all pictures.
        return {**self.__dict__, "_array": None}

    def readable(self, count: int) -> np.ndarray:
        """The readable ones of all ``count`` pictures; the others are printed. Raises LDLError where none is left."""
        return readable(self.failed, count)


def readable(failed: dict[int, str], count: int) -> np.ndarray:
    """As :meth:`Crops.readable`, of why each unreadable picture could not be read."""
    if len(failed) == count:
        raise LDLError(f"not one of {count} pictures can be read, the first: {failed[0]}")
    if failed and process_rank() == 0:
        print(f"left out {len(failed)} of {count} unreadable pictures:")
        print("\n".join(f"  {reason}" for reason in failed.values()), flush=True)
    return np.setdiff1d(np.arange(count), list(failed))


def cached_crops(records: FaceRecords, size: int, margin: float | None, cache: Path) -> Crops:
    """The crops of all pictures, from the cache where they are there, else made now.

    The key is made of every picture's path, length and time of change, its anchor, and the options; so a changed
    picture or landmark is cropped anew. Pictures that an earlier run could not read are tried again. Processes that ask
    at the same time wait for the first of them. ``size`` is the side in pixels, ``margin`` that of ``align.placement``.
    """
    key = _key(records, size, margin)
    folder = cache / "crops"
    file, failures = folder / f"{key}.npy", folder / f"{key}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{key}.lock"):
            if not (file.is_file() and failures.is_file()):
                print(f"cropping {len(records)} pictures to {size}x{size} into {folder}", flush=True)
                _make(records, size, margin, file, failures)
            elif of_earlier_run(failures) and (failed := _read(failures)):
                failed = _fill(file, records, list(failed), size, margin)
                with replacing(failures) as stream:
                    stream.write(json.dumps(failed).encode())
    except OSError as error:
        raise LDLError(
            f"the cache {folder} cannot be written: {error.strerror}; set data.cache_dir or LDL_CACHE"
        ) from error
    return Crops(file, key, _read(failures))


def _read(failures: Path) -> dict[int, str]:
    return {int(row): reason for row, reason in json.loads(failures.read_text(encoding="utf-8")).items()}


def _make(records: FaceRecords, size: int, margin: float | None, file: Path, failures: Path) -> None:
    temporary = file.with_suffix(".tmp")
    try:
        open_memmap(temporary, mode="w+", dtype=np.uint8, shape=(len(records), size, size, 3))
        if hasattr(os, "posix_fallocate"):
            # The map has holes, and a disk that is full where one is written to ends the process.
            with temporary.open("r+b") as opened:
                os.posix_fallocate(opened.fileno(), 0, temporary.stat().st_size)
        failures.write_text(json.dumps(_fill(temporary, records, range(len(records)), size, margin)), encoding="utf-8")
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _fill(file: Path, records: FaceRecords, rows: Sequence[int], size: int, margin: float | None) -> dict[int, str]:
    """Write the crops of some pictures to a file that has room for all. Why pictures cannot be read, by row."""
    array = open_memmap(file, mode="r+")
    failed: dict[int, str] = {}

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


def _key(records: FaceRecords, size: int, margin: float | None) -> str:
    digest = hashlib.sha256(f"{_VERSION} {size} {margin!r} {records.folder.resolve()}".encode())
    for row, file in enumerate(records.files):
        try:
            status = (records.folder / file).stat()
            seen = (status.st_size, status.st_mtime_ns)
        except OSError:
            seen = (-1, -1)
        anchor = records.anchor(row)
        digest.update(f"|{file} {seen}".encode() + (b"" if anchor is None else anchor.astype(float).tobytes()))
    return digest.hexdigest()[:20]
