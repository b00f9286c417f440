"""Where crops, features and tables are kept, which can always be made again."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from ldl.errors import LDLError

BEGUN = float(os.environ.setdefault("LDL_BEGUN", repr(time.time())))
"""When this process began, or the one that launched it, such as rank 0."""


def cache_root(given: str | None = None) -> Path:
    """As given, or the environment's ``LDL_CACHE``, or ``~/.cache/ldl``."""
    return Path(given or os.environ.get("LDL_CACHE") or Path.home() / ".cache" / "ldl")


def files_key(files: Sequence[Path], how: str) -> str:
    """A key of the paths, lengths and times of change of some files, and of ``how`` they are read."""
    digest = hashlib.sha256(how.encode())
    for file in files:
        status = file.stat()
        digest.update(f"|{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:20]


def of_earlier_run(file: Path) -> bool:
    """Whether a file was written before this process, or the one that launched it, began.

    What could not be read then is tried again: the reason may have passed, such as a permission. What this run has
    found stays, so that its processes and folds have the same rows.
    """
    return file.stat().st_mtime < BEGUN


def cached_folder(folder: Path, make: Callable[[Path], None], what: str) -> Path:
    """The folder, as ``make(folder)`` fills it where it is not there: it appears under its name once it is whole.

    Processes that ask at the same time wait for the first; what a killed one has left is thrown away.

    Args:
        folder: A place of which the name says all that its content depends on.
        make: Fills an empty folder.
        what: What is made, for the line that a run prints.

    Raises:
        LDLError: the cache cannot be written.
    """
    half = folder.with_name(f"{folder.name}.tmp")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                shutil.rmtree(half, ignore_errors=True)
                half.mkdir()
                print(f"{what} into {folder}", flush=True)
                try:
                    make(half)
                    os.replace(half, folder)
                finally:
                    shutil.rmtree(half, ignore_errors=True)
    except OSError as error:
        raise LDLError(
            f"the cache {folder.parent} cannot be written: {error.strerror}; set data.cache_dir or LDL_CACHE"
        ) from error
    return folder
