"""Workers: run jobs in this process, in others or on a Dask cluster, and run those of lost processes again."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from ldl.errors import LDLError
from ldl.jobs.executors import open_executor
from ldl.progress import Stopped, stop

MAX_LOSSES = 3
"""Rounds that may lose a worker without finishing a job before the run stops."""
POLL_SECONDS = 0.2
"""Time between two checks for a stop signal."""
FOLDER_VARIABLES = ("LDL_DATA", "LDL_CACHE", "LDL_WEIGHTS")
"""Environment variables that name folders, which Dask workers receive."""
OTHER_WORKER = (
    "a worker has other data, weights or plugins, or another version of ldl, than the process that started it"
)
_one_job = threading.Lock()
"""Held while a job runs: jobs seed the process, so a process runs one at a time."""


@dataclass(frozen=True)
class Workers:
    """The processes that run jobs.

    Attributes:
        jobs: Number of processes on this machine; 1 runs jobs in this process.
        scheduler: Address of a Dask scheduler whose workers run the jobs instead; None for none.
    """

    jobs: int = 1
    scheduler: str | None = None

    def __str__(self) -> str:
        return f"{self.jobs} processes" if self.scheduler is None else f"the workers of {self.scheduler}"

    @property
    def are_remote(self) -> bool:
        """Whether the jobs run in other processes than this one."""
        return self.jobs > 1 or self.scheduler is not None

    def run(
        self,
        jobs: Mapping[str, Callable[[], Any]],
        on_result: Callable[[str, Any], None] = lambda name, result: None,
    ) -> dict[str, str]:
        """Run all jobs and return the errors of those that failed in other processes, by name.

        A job whose worker dies runs again. In this process, an error of a job is raised.

        Args:
            jobs: Functions without arguments by the name of the job; they are pickled.
            on_result: Function of the name and the result of each finished job.

        Raises:
            LDLError: a job raised one, or workers die repeatedly.
            Stopped: the process received a stop signal; no worker is left.
        """
        if not self.are_remote:
            for name, work in jobs.items():
                stop.leave()
                on_result(name, work())
            return {}
        waiting, failed, losses = dict(jobs), dict[str, str](), 0
        while waiting:
            before, lost = len(waiting), ""
            with open_executor(self.jobs, self.scheduler) as executor:
                run = partial(_run_remotely, str(Path.cwd()), _folders()) if self.scheduler else _run
                futures = {executor.submit(run, work): name for name, work in waiting.items()}
                for future in _as_completed(futures):
                    name = futures[future]
                    try:
                        result = future.result()
                    except BrokenExecutor as error:
                        lost = one_line(error)
                        continue
                    except LDLError as error:
                        raise LDLError(f"{name}: {error}") from error
                    except Exception as error:  # any error of a model or its data
                        failed[name] = one_line(error)
                    else:
                        on_result(name, result)
                    del waiting[name]
            losses = losses + 1 if lost and len(waiting) == before else 0
            if losses == MAX_LOSSES:
                raise LDLError(
                    f"workers died {MAX_LOSSES} times before one of {', '.join(waiting)} finished ({lost}), possibly "
                    "for lack of memory; use fewer --jobs"
                )
        return failed


def _as_completed(futures: Iterable[Future[Any]]) -> Iterator[Future[Any]]:
    """Yield futures as they finish. Raises Stopped after a stop signal."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        if stop.signal:
            stop.leaves = True
            raise Stopped
        yield from done


def _run(work: Callable[[], Any]) -> Any:
    with _one_job:
        return work()


def _folders() -> dict[str, str]:
    return {name: os.path.abspath(os.environ[name]) for name in FOLDER_VARIABLES if os.environ.get(name)}


def _run_remotely(folder: str, folders: dict[str, str], work: Callable[[], Any]) -> Any:
    if not os.path.isdir(folder):
        raise LDLError(
            f"a worker on {os.uname().nodename} does not see {folder}; --scheduler needs a file system that all "
            "workers share"
        )
    with _one_job:
        os.chdir(folder)
        os.environ.update({name: path for name, path in folders.items() if os.path.isdir(path)})
        return work()


@dataclass(frozen=True)
class PerProcess:
    """A value that every process that runs jobs makes once; it keeps the last one.

    Attributes:
        key: Identifies the value.
        make: Function that returns the value; it is pickled.
    """

    key: str
    make: Callable[[], Any] = field(compare=False)

    def get(self) -> Any:
        """Return the value of this process."""
        return _made(self)


@lru_cache(maxsize=1)
def _made(value: PerProcess) -> Any:
    return value.make()


def check_one_process(config: Namespace, beginning: str) -> None:
    """Raise LDLError if the configured trainer uses several processes; ``beginning`` is that of the message."""
    devices, nodes = config.trainer.devices, config.trainer.num_nodes
    if nodes > 1 or devices not in ("auto", 1, "1", [0]):
        option = f"--trainer.num_nodes {nodes}" if nodes > 1 else f"--trainer.devices {devices}"
        raise LDLError(f"{beginning} in one process; leave {option} out, or give --trainer.devices 1")


def one_line(error: BaseException) -> str:
    """Return the type and the message of an error in one line; an LDLError needs no type."""
    kind = "" if isinstance(error, LDLError) else f"{type(error).__name__}: "
    return f"{kind}{' '.join(str(error).split())[:200]}"
