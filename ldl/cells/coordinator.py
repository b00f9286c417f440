"""Does what is wanted of a set of cells: tries again what was lost, and names what failed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ldl.cells.executors import open_executor
from ldl.errors import LDLError
from ldl.progress import Stopped, stop

LOSSES = 3
"""Of workers, without a cell that is done in between, after which no more are begun."""
TICK = 0.2
"""Seconds between two looks whether the run was told to end."""
PLACES = ("LDL_DATA", "LDL_CACHE", "LDL_WEIGHTS")
"""Variables of the environment that name folders."""
alone = threading.Lock()
"""Cells of one process go one after the other: they seed it."""


@dataclass(frozen=True)
class Cell:
    """A piece of work that any process can do.

    Attributes:
        name: In messages.
        work: What does it and writes its outcome; it is pickled, with what it is bound to.
    """

    name: str
    work: Callable[[], Any]


@dataclass(frozen=True)
class Workers:
    """Who does cells.

    Attributes:
        jobs: Processes of this machine.
        scheduler: Address of a Dask scheduler, or None.
    """

    jobs: int = 1
    scheduler: str | None = None

    def __str__(self) -> str:
        return f"{self.jobs} processes" if self.scheduler is None else f"the workers of {self.scheduler}"

    @property
    def are_others(self) -> bool:
        """Whether they are other processes than this one."""
        return self.jobs > 1 or self.scheduler is not None

    def do(self, cells: list[Cell], each: Callable[[str, Any], None] = lambda name, outcome: None) -> dict[str, str]:
        """Do all cells, and return why some failed, in one line each by their names.

        A cell whose worker is lost is tried again by another.

        Args:
            cells: What is to be done; their names differ.
            each: Is called with the name and the outcome of each that is done.

        Raises:
            LDLError: a cell was refused, or workers are lost again and again.
            Stopped: the run was told to end; no worker is left.
        """
        left = {cell.name: cell for cell in cells}
        failed: dict[str, str] = {}
        losses = 0
        while left:
            before = len(left)
            with open_executor(self.jobs, self.scheduler) as executor:
                there = partial(_there, str(Path.cwd()), _known()) if self.scheduler else _here
                futures = {executor.submit(there, cell.work): name for name, cell in left.items()}
                lost = self._gather(futures, left, failed, each)
            losses = losses + 1 if lost and len(left) == before else 0
            if losses == LOSSES:
                raise LDLError(
                    f"workers were lost {LOSSES} times before one of {', '.join(left)} was done ({lost}); was there "
                    "enough memory? ask for fewer --jobs"
                )
        return failed

    def _gather(
        self,
        futures: dict[Future[Any], str],
        left: dict[str, Cell],
        failed: dict[str, str],
        each: Callable[[str, Any], None],
    ) -> str:
        """Wait for all; what is done or has failed is no longer ``left``. Why a worker was lost, if one was."""
        pending, lost = set(futures), ""
        while pending:
            done, pending = wait(pending, timeout=TICK, return_when=FIRST_COMPLETED)
            if stop.signal:
                stop.leaves = True
                raise Stopped
            for future in done:
                name = futures[future]
                try:
                    outcome = future.result()
                except BrokenExecutor as error:
                    lost = " ".join(str(error).split())[:200]
                    continue
                except LDLError as error:
                    raise LDLError(f"{name}: {error}") from error
                except Exception as error:  # cells fail in ways of their own
                    failed[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                else:
                    each(name, outcome)
                del left[name]
        return lost


def _here(work: Callable[[], Any]) -> Any:
    with alone:
        return work()


def _known() -> dict[str, str]:
    """What the environment says of the places of data and weights."""
    return {name: os.path.abspath(os.environ[name]) for name in PLACES if os.environ.get(name)}


def _there(folder: str, environment: dict[str, str], work: Callable[[], Any]) -> Any:
    """Do a cell on a machine that shares the file system."""
    with alone:
        if not os.path.isdir(folder):
            raise LDLError(
                f"a worker on {os.uname().nodename} does not see {folder}; --scheduler needs a file system that all "
                "workers share"
            )
        os.chdir(folder)
        os.environ.update({name: place for name, place in environment.items() if os.path.isdir(place)})
        return work()
