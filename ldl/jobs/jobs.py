"""Jobs that run in this process, in others or on a Dask cluster, and the store of their results."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import torch

from ldl.checkpoint import replacing
from ldl.errors import LDLError
from ldl.progress import Stopped, stop

Row = dict[str, Any]
"""The key of a job and its result, or the ``error``."""

MAX_LOSSES = 3
"""Rounds that may lose a worker without finishing a job before the run stops."""
POLL_SECONDS = 0.2
"""Time between two checks for a stop signal."""
PARENT_TICK = 1.0
"""Time between two checks whether the parent process is there, in seconds."""
DASK_TIMEOUT = 30
"""Seconds in which a Dask scheduler must answer."""
FOLDER_VARIABLES = ("LDL_DATA", "LDL_CACHE", "LDL_WEIGHTS")
"""Environment variables that name folders, which Dask workers receive."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that numeric libraries read when they are loaded."""
_one_job = threading.Lock()
"""Held while a job runs: jobs seed the process, so a process runs one at a time."""


def processors() -> int:
    """Return the number of processors that this process may use, which a scheduler or ``taskset`` may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_line(error: BaseException) -> str:
    """Return the type and the message of an error in one line; an LDLError needs no type."""
    kind = "" if isinstance(error, LDLError) else f"{type(error).__name__}: "
    return f"{kind}{' '.join(str(error).split())[:200]}"


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


def open_executor(jobs: int = 1, scheduler: str | None = None) -> AbstractContextManager[Executor]:
    """Open an executor of ``concurrent.futures``; if the block raises, the workers are killed.

    Args:
        jobs: Number of processes on this machine. They share its threads, and each gets one of its GPUs in turn.
        scheduler: Address of a Dask scheduler, such as ``tcp://host:8786``, whose workers replace these processes.

    Raises:
        LDLError: the scheduler does not answer, or Dask is not installed.
    """
    return _open_dask(scheduler) if scheduler else _open_loky(jobs)


@contextmanager
def _open_loky(jobs: int) -> Iterator[Executor]:
    from loky import ProcessPoolExecutor
    from loky.backend import get_context

    context = get_context("loky")
    devices = context.SimpleQueue()
    for device in devices_of(jobs, os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count()):
        devices.put(device)
    # loky replaces a worker whose memory grows; mapped files and large fits are no leak.
    environment = {**threads_of(jobs), "LOKY_MAX_MEMORY_LEAK_SIZE": "1e15"}
    executor = ProcessPoolExecutor(
        jobs, context=context, env=environment, initializer=_start_worker, initargs=(os.getpid(), devices)
    )
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=True, kill_workers=True)
        raise
    executor.shutdown(wait=True)


def threads_of(jobs: int) -> dict[str, str]:
    """Return the environment that gives each of ``jobs`` processes its share of the threads of this process."""
    return {name: str(max(1, int(os.environ.get(name) or processors()) // jobs)) for name in THREAD_VARIABLES}


def devices_of(jobs: int, visible: str | None, count: int) -> list[str]:
    """Return CUDA_VISIBLE_DEVICES of each of ``jobs`` processes: one GPU, in turn; empty strings without a GPU.

    Args:
        jobs: Number of processes.
        visible: CUDA_VISIBLE_DEVICES of this process, or None.
        count: Number of GPUs that this process sees.
    """
    names = (visible.split(",") if visible else [str(number) for number in range(count)])[:count] or [""]
    return [names[number % len(names)] for number in range(jobs)]


def _start_worker(parent: int, devices: Any) -> None:
    """Let the parent handle Ctrl-C, end with it, and use one GPU."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    if device := devices.get():
        os.environ["CUDA_VISIBLE_DEVICES"] = device


@contextmanager
def _open_dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise LDLError("--scheduler needs Dask: pip install 'ldl[dask]'") from None
    try:
        client = Client(address, timeout=DASK_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise LDLError(f"no Dask scheduler answers at --scheduler {address}: {reason}; start dask scheduler") from error
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


@cache
def end_with_parent(parent: int) -> None:
    """End this process at once, with exit code 1, as soon as it is no longer a child of the process ``parent``."""
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True, name="parent").start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_TICK)
    os._exit(1)


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


class Store:
    """Results of jobs on disk, one ``HASH/results.json`` for each key. Processes may share a folder.

    A file is written atomically when its job is finished. A result with an ``error`` is computed again by the next
    store.

    Args:
        folder: Folder of the results; it may not exist yet.

    Raises:
        LDLError: a file of the folder is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows: dict[str, Row] = {}
        for path in sorted(folder.glob("*/results.json"), key=lambda path: (path.stat().st_mtime_ns, path)):
            try:
                row = dict(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError) as error:
                reason = f"{path} cannot be read: {error}; remove it to compute this result again"
                raise LDLError(reason) from None
            if "error" not in row:
                self._rows[path.parent.name] = row

    @property
    def rows(self) -> list[Row]:
        """Keys with their results, in the order in which they were computed."""
        return list(self._rows.values())

    def find(self, key: Row) -> Row | None:
        """Return the result of a key, or None."""
        return self._rows.get(name_of(key))

    def get(self, key: Row, compute: Callable[[], Row]) -> Row:
        """Return the result of a key; if it is missing, compute and write it."""
        return self.find(key) or self._rows.setdefault(name_of(key), write_row(self.folder, key, compute))

    def fill(
        self,
        wanted: Iterable[tuple[Row, Callable[[], Row]]],
        workers: Workers,
        on_result: Callable[[Row], None] = lambda row: None,
    ) -> None:
        """Compute missing results, each of which the process that computes it writes.

        Args:
            wanted: Pairs of a key and the function that computes its result, which is pickled.
            workers: The processes.
            on_result: Function of each result that was computed.

        Raises:
            LDLError: a job raised one, or workers die repeatedly.
        """
        missing = {describe(key): (key, compute) for key, compute in wanted if self.find(key) is None}
        folder = self.folder.absolute()

        def add(name: str, row: Row) -> None:
            self._rows[name_of(missing[name][0])] = row
            on_result(row)

        jobs = {name: partial(write_row, folder, key, compute) for name, (key, compute) in missing.items()}
        for name, reason in workers.run(jobs, add).items():
            self.get(missing[name][0], partial(dict, error=reason))


def write_row(folder: Path, key: Row, compute: Callable[[], Row]) -> Row:
    """Write the result of a key in ``folder`` atomically, and return it as it will be read: tuples become lists."""
    text = json.dumps(key | compute())
    with replacing(folder / name_of(key) / "results.json") as file:
        file.write(f"{text}\n".encode())
    row: Row = json.loads(text)
    return row


def name_of(key: Row) -> str:
    """Return the name of the folder of a key."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]


def describe(key: Row) -> str:
    """Return a key as text for messages."""
    return ", ".join(f"{name} {value}" for name, value in key.items())
