"""The run directory: its name, one run at a time, no foreign file is replaced, and a failed start leaves nothing."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from jsonargparse import Namespace

from ldl.checkpoint import RESUME_ADVICE, replacing
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.progress import Stopped
from ldl.run import signals
from ldl.run.resume import restarts

RUN_DIR_VARIABLE = "LDL_RUN_DIR"
"""Environment variable in which rank 0 hands the run directory to the processes that it launches."""

LONGEST = 60
"""Characters of the data set's name in a folder's name."""

RESULTS = {"results.json", "predictions.csv"}
SEARCHES = "journals"
"""The folder of a search's trials."""
WRITTEN = RESULTS | {
    *("config.yaml", "metrics.csv", "model_card.md", "comparison.json", "table.md", "ranks.png", "recommended.yaml"),
    *("best.yaml", "trials.csv", "history.png", "charts", "checkpoints", "wandb", "maps", "jobs", SEARCHES),
}
"""Names that runs, comparisons and searches write into their directory, besides folds; other reports add theirs."""
FOLDS = "fold_*"
MARK = ".ldl"
"""A file that marks a folder into which a run has written."""
LOCK = ".lock"
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
"""Errors of the disk, not of the program."""
LOCK_SECONDS = 60
"""Seconds that a restarted run waits for the lock of its earlier processes."""


def choose_folder(config: Namespace, data: LDLDataModule, head: str) -> Path:
    """Return the run directory: the given one, the one that rank 0 chose, or a new ``runs/TIME_DATA_HEAD``."""
    if config.run_dir is not None:
        return Path(config.run_dir)
    if RUN_DIR_VARIABLE not in os.environ:
        folder = base = Path("runs") / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{subject(data, head)}"
        number = 1
        while folder.exists():
            number += 1
            folder = base.with_name(f"{base.name}-{number}")
        os.environ[RUN_DIR_VARIABLE] = str(folder)
    return Path(os.environ[RUN_DIR_VARIABLE])


def run_name(folder: Path, data: LDLDataModule, head: str) -> str:
    """Return the name of a run or of a group of folds: its directory's, with data and head if they are missing."""
    return folder.name if subject(data, head) in folder.name else f"{folder.name}_{subject(data, head)}"


def subject(data: LDLDataModule, head: str) -> str:
    """Return ``DATA_HEAD`` in characters that every file system accepts."""
    title = re.sub(r"[^\w.-]+", "-", data.title)[:LONGEST]
    return f"{title}_{head}"


def check_writable(folder: Path, read: Iterable[str | Path] = ()) -> None:
    """Raise LDLError if a run would replace files that it reads, or files in a folder that belongs to no run."""
    for given in read:
        place = os.path.realpath(given)
        for name in sorted(WRITTEN):
            if f"{place}/".startswith(f"{os.path.realpath(folder / name)}/"):
                raise LDLError(f"{given} is read, and --run_dir {folder} would write {name} there; give another folder")
    there = [path for name in (*sorted(WRITTEN - {"wandb"}), FOLDS) for path in folder.glob(name)]
    if there and not _is_of_run(folder):
        raise LDLError(
            f"--run_dir {folder} has {there[0].name}, which no run of ldl wrote; give another folder, or move it away"
        )


def _is_of_run(folder: Path) -> bool:
    # Searches, and runs from before MARK, have none.
    return any((folder / name).exists() for name in (MARK, "checkpoints/last.ckpt", SEARCHES))


def check_no_run(folder: Path, what: str) -> None:
    """Raise LDLError if a folder has files of a run, but is meant for ``what``, such as a search."""
    if there := next((name for name in [*RESULTS, "checkpoints", "fold_0"] if (folder / name).exists()), None):
        raise LDLError(f"--run_dir {folder} has {there} of a run; give {what} another folder")


@contextmanager
def run_dir_lock(folder: Path, read: Iterable[str | Path] = ()) -> Iterator[None]:
    """Make a run directory and lock it for the processes of this run; rank 0 holds the lock.

    The operating system releases the lock of a killed run. Directories that the run leaves empty are removed.

    Args:
        folder: The run directory.
        read: Files and folders that the run reads.

    Raises:
        LDLError: Another run has the lock, the folder has files that no run wrote, or the disk fails or is full.
    """
    if process_rank():
        yield
        return
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=LOCK_SECONDS if restarts() else 0)
    except Timeout:
        raise LDLError(
            f"another run is in --run_dir {folder}; give another folder, or wait until it has ended"
        ) from None
    except OSError as error:
        raise LDLError(f"--run_dir {folder} cannot be written: {error.strerror}; give another folder") from error
    signals.shutdown.lock = folder / LOCK
    is_new = not _is_of_run(folder)
    try:
        check_writable(folder, read)
        (folder / MARK).touch()
        yield
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        what = error.filename or f"a file of --run_dir {folder}"
        raise LDLError(f"{what} cannot be read or written: {error.strerror}; {RESUME_ADVICE}") from error
    finally:
        signals.shutdown.lock = None
        (folder / LOCK).unlink(missing_ok=True)
        if is_new and not any(path for name in (*WRITTEN, FOLDS) for path in folder.glob(name)):
            (folder / MARK).unlink(missing_ok=True)
        lock.release()
        for parent in made:
            if not any(parent.iterdir()):
                parent.rmdir()


@contextmanager
def cleanup_on_error(folder: Path) -> Iterator[None]:
    """Remove the new files of a run if it ends by LDLError or a signal before it has checkpoints or results.

    Files from before stay as they were, and so do files of other runs, such as one in a folder below.
    """
    there = _content(folder)
    missing = [place for place in (folder, *folder.parents) if not os.path.exists(place)]
    config = folder / "config.yaml"
    before = config.read_bytes() if config in there else None
    try:
        yield
    except (LDLError, Stopped):
        made = _content(folder) - there
        if process_rank() == 0 and not any(path.suffix == ".ckpt" or path.name in RESULTS for path in made):
            for path in [*sorted(made, reverse=True), *missing]:
                with suppress(OSError):
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            if before is not None:
                with replacing(config) as file:
                    file.write(before)
        raise


def _content(folder: Path) -> set[Path]:
    own = [*folder.glob(FOLDS), *(folder / name for name in WRITTEN if os.path.lexists(folder / name))]
    return set(own).union(*(path.rglob("*") for path in own if not path.is_symlink()))
