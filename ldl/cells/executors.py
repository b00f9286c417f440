"""Where cells are done: in processes of this machine, or by the workers of a Dask cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from multiprocessing.util import Finalize
from typing import Any

import torch

from ldl.cells.processors import processors
from ldl.errors import LDLError
from ldl.start.parent import end_with

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""What the libraries read when they are loaded."""
GROWTH = "LOKY_MAX_MEMORY_LEAK_SIZE"
"""Where loky reads by how many bytes a process may grow before another is begun in its place."""
PATIENCE = 30
"""Seconds in which a scheduler must answer."""


@contextmanager
def open_executor(jobs: int = 1, scheduler: str | None = None) -> Iterator[Executor]:
    """An executor of ``concurrent.futures`` that is closed in the end, and at once where the block ends in an error.

    Args:
        jobs: How many processes of this machine; they share its threads, and its GPUs are dealt to them.
        scheduler: Address of a Dask scheduler, such as ``tcp://host:8786``, whose workers do the work in place of them.

    Raises:
        LDLError: the scheduler does not answer, or Dask is not installed.
    """
    with _of_dask(scheduler) if scheduler else _of_loky(jobs) as executor:
        yield executor


@contextmanager
def _of_loky(jobs: int) -> Iterator[Executor]:
    from loky import ProcessPoolExecutor
    from loky.backend import get_context

    context = get_context("loky")
    devices = context.SimpleQueue()
    for device in devices_of(jobs, os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count()):
        devices.put(device)
    executor = ProcessPoolExecutor(
        jobs,
        context=context,
        env={**threads_of(jobs), GROWTH: os.environ.get(GROWTH, "1e15")},  # cells differ, and map large files
        initializer=_begin,
        initargs=(os.getpid(), devices),
    )
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=True, kill_workers=True)
        raise
    executor.shutdown(wait=True)


def threads_of(jobs: int) -> dict[str, str]:
    """Environment of each of ``jobs`` processes: its share of the threads that this one may have."""
    return {name: str(max(1, int(os.environ.get(name) or processors()) // jobs)) for name in THREADS}


def devices_of(jobs: int, visible: str | None, count: int) -> list[str]:
    """CUDA_VISIBLE_DEVICES of each of ``jobs`` processes: one GPU, in turn.

    Args:
        jobs: How many processes.
        visible: CUDA_VISIBLE_DEVICES of this one, or None.
        count: How many GPUs this one sees; without any all get an empty text.
    """
    names = (visible.split(",") if visible else [str(place) for place in range(count)])[:count] or [""]
    return [names[number % len(names)] for number in range(jobs)]


def _begin(parent: int, devices: Any) -> None:
    """Make a process a worker: it leaves Ctrl-C to its parent, and ends when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    device = devices.get()
    # For the one that loky begins in its place.
    Finalize(None, devices.put, args=(device,), exitpriority=0)
    if device:
        os.environ["CUDA_VISIBLE_DEVICES"] = device


@contextmanager
def _of_dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise LDLError("--scheduler needs Dask: pip install 'ldl[dask]'") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
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
