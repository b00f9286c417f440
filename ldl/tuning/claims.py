"""Who works at what: a file a trial, locked by the process that does it.

The lock is the operating system's, so that of a killed process is gone and others see it. Machines that share a study
see each other's where the file system hands locks on: local disks, NFS 4, NFS 3 with its lock daemon, Lustre mounted
with flock. Where it does not, a trial of another machine looks lost and is tried twice, of which one result counts.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    import optuna

ERROR = "error"
"""Attribute of a trial that failed by itself."""


class Mark:
    """The lock that a process holds as long as it does a trial.

    Args:
        folder: Where the files of all processes are.

    Attributes:
        name: Of the file; it says which machine and process.
    """

    def __init__(self, folder: Path) -> None:
        self.name = f"{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / self.name)
        self._lock.acquire()

    def release(self) -> None:
        """The trial is told."""
        Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()


def is_held(folder: Path, name: str | None) -> bool:
    """Whether the process of a mark is there yet; the file of a dead one goes. Without a mark it died at once."""
    if name is None or not (path := folder / name).exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    path.unlink(missing_ok=True)
    lock.release()
    return False


class Claim:
    """A trial that this process does, and tells the others of in one of four ways.

    Where others took it for lost, because they cannot see its lock, what is told here is left out.

    Args:
        study: Of the trial.
        trial: It.
        mark: The lock of it.

    Attributes:
        setting: What is to be tried.
    """

    def __init__(self, study: optuna.Study, trial: optuna.Trial, mark: Mark, setting: dict[str, Any]) -> None:
        self.setting = setting
        self.number = trial.number
        self._study, self._trial, self._mark = study, trial, mark

    def report(self, value: float, step: int) -> bool:
        """Report what is measured so far; whether the trial is to be given up."""
        self._trial.report(value, step)
        return bool(self._trial.should_prune())

    def complete(self, value: float) -> None:
        """It was measured."""
        self._tell(values=value)

    def prune(self) -> None:
        """It was given up early."""
        self._tell(state="PRUNED")

    def fail(self, error: str) -> None:
        """The setting does not work."""
        from optuna.exceptions import UpdateFinishedTrialError

        with suppress(UpdateFinishedTrialError):
            self._trial.set_user_attr(ERROR, error)
        self._tell(state="FAIL")

    def give_back(self) -> None:
        """This process was told to end: others may try it again."""
        self._tell(state="FAIL")

    def _tell(self, state: str | None = None, values: float | None = None) -> None:
        from optuna.trial import TrialState

        try:
            self._study.tell(self._trial, values, None if state is None else TrialState[state], skip_if_finished=True)
        finally:
            self._mark.release()
