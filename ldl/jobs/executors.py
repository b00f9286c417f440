"""Executors of jobs: processes on this machine, which share its threads and GPUs, or the workers of a Dask cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import torch

from ldl.errors import LDLError

PARENT_CHECK_SECONDS = 1.0
"""Time between two checks whether the parent process is there."""
DASK_TIMEOUT = 30
"""Seconds in which a Dask scheduler must answer."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that numeric libraries read when they are loaded."""


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


def processors() -> int:
    """Return the number of processors that this process may use, which a scheduler or ``taskset`` may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def end_with_parent(parent: int) -> None:
    """End this process at once, with exit code 1, as soon as it is no longer a child of the process ``parent``."""
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True, name="parent").start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)
