"""The cache of crops, features and tables, all of which ldl can compute again."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ldl.checkpoint import replacing
from ldl.errors import explaining

BEGUN = float(os.environ.setdefault("LDL_BEGUN", repr(time.time())))
"""Start of this process, or of the process that launched it, such as rank 0."""


def cache_root(folder: str | None = None) -> Path:
    """Return the cache folder: the given one, else ``LDL_CACHE``, else ``~/.cache/ldl``."""
    return Path(folder or os.environ.get("LDL_CACHE") or Path.home() / ".cache" / "ldl")


def files_key(files: Sequence[Path], how: str) -> str:
    """Return a key of the paths, sizes and modification times of files, and of ``how`` they are read."""
    digest = hashlib.sha256(how.encode())
    for file in files:
        status = file.stat()
        digest.update(f"|{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:20]


def of_earlier_run(file: Path) -> bool:
    """Return whether a file was written before this process, or the process that launched it, began."""
    return file.stat().st_mtime < BEGUN


@contextmanager
def writable(folder: Path, name: str) -> Iterator[None]:
    """Lock an entry of the cache, whose folder is made. Raises LDLError if the cache cannot be written."""
    with explaining(f"the cache {folder} cannot be written", "set data.cache_dir or LDL_CACHE", (OSError,)):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{name}.lock"):
            yield


@contextmanager
def retried(
    file: Path, count: int, make: Callable[[Sequence[int]], bytes], failed: Callable[[bytes], Sequence[int]]
) -> Iterator[None]:
    """Write a file of the cache about ``count`` images if it is absent, and hold its lock.

    A later run tries again to read an image that an earlier run could not read: the cause may be gone, such as a
    missing permission. Results of the same run stay, so that its processes and folds have the same rows.

    Args:
        file: The file. Its name depends on everything that its content depends on.
        count: Number of images.
        make: Reads images, given by their rows, and returns the content.
        failed: Returns the rows of the images that could not be read, from the content.

    Raises:
        LDLError: The cache cannot be written.
    """
    with writable(file.parent, file.stem):
        rows: Sequence[int] = range(count)
        if file.is_file():
            rows = failed(file.read_bytes()) if of_earlier_run(file) else []
        if rows:
            content = make(rows)
            with replacing(file) as stream:
                stream.write(content)
        yield


def cached_folder(folder: Path, make: Callable[[Path], None], description: str) -> Path:
    """Return a cache folder, filled by ``make(folder)`` if it is absent.

    The folder appears under its name when it is complete. Concurrent processes wait for the first one. The remains of a
    killed process are removed.

    Args:
        folder: The folder. Its name depends on everything that its content depends on.
        make: Fills an empty folder.
        description: Description of the content, for the line that is printed.

    Raises:
        LDLError: The cache cannot be written.
    """
    half = folder.with_name(f"{folder.name}.tmp")
    with writable(folder.parent, folder.name):
        if not folder.is_dir():
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            print(f"{description} into {folder}", flush=True)
            try:
                make(half)
                os.replace(half, folder)
            finally:
                shutil.rmtree(half, ignore_errors=True)
    return folder
