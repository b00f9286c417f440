"""One run at a time in a run directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ldl.checkpoint import MENDED
from ldl.collective import process_rank
from ldl.errors import LDLError
from ldl.running import stopping
from ldl.running.restart import restarts

NAME = ".lock"
REASONS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
"""Of these the disk is the cause, and not the program."""
PATIENCE = 60
"""Seconds that a run which its launcher starts again waits for what is left of it before."""


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make a run directory and keep others out of it; all processes of this run share it, rank 0 holds the lock.

    The lock is the operating system's, so that of a killed run is gone. A directory that the run leaves empty goes.

    Raises:
        LDLError: another run is in it, or the disk is full or takes no more.
    """
    if process_rank():
        yield
        return
    made = [parent for parent in (folder, *folder.parents) if not os.path.exists(parent)]
    lock = FileLock(folder / NAME)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=PATIENCE if restarts() else 0)
    except Timeout:
        raise LDLError(
            f"another run is in --run_dir {folder}; give another folder, or wait until it has ended"
        ) from None
    except OSError as error:
        raise LDLError(f"--run_dir {folder} cannot be written: {error.strerror}; give another folder") from error
    stopping.watch.lock = folder / NAME
    try:
        yield
    except OSError as error:
        if error.errno not in REASONS:
            raise
        what = error.filename or f"a file of --run_dir {folder}"
        raise LDLError(f"{what} cannot be read or written: {error.strerror}; {MENDED}") from error
    finally:
        stopping.watch.lock = None
        (folder / NAME).unlink(missing_ok=True)
        lock.release()
        for parent in made:
            if not any(parent.iterdir()):
                parent.rmdir()
