"""Loaders of batches, and the processes that they start."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import forkserver, get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from typing import Any

from lightning_fabric.utilities.seed import pl_worker_init_function
from torch.utils.data import DataLoader, Dataset

from ldl.data.instances import Guarded, collate
from ldl.data.sampler import DealtBatchSampler


class ResumableLoader(DataLoader[Any]):
    """A loader that goes on in the middle of an epoch, and hands on the death of a loader process as an error.

    Lightning looks for the two methods of its state. There is nothing to keep: the sampler asks the training loop how
    far it is.
    """

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass

    def __iter__(self) -> Any:
        # Begun here and not at the first batch, by when a resuming loop has reset its counters.
        return _with_deaths(super().__iter__())


def _with_deaths(batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (RuntimeError, OSError, EOFError):
            # The server tells of a death a little later than the broken connection.
            sentinels = {worker.sentinel: worker.pid for worker in getattr(batches, "_workers", [])}
            dead = [sentinels[sentinel] for sentinel in wait(sentinels, timeout=1.0)]
            if not dead:
                raise
            # As a batch, of which all processes learn together.
            who = ", ".join(map(str, dead))
            advice = "as for lack of memory; lower data.num_workers or data.batch_size"
            batch = {"error": f"loader process {who} was killed or has crashed, {advice}"}
        yield batch


def in_order(dataset: Dataset[Any], size: int, batch_size: int) -> DataLoader[Any]:
    """All of a data set in order, in one process."""
    sampler = DealtBatchSampler(size, batch_size, shuffle=False)
    return DataLoader(Guarded(dataset), batch_sampler=sampler, collate_fn=collate)


PRELOADED = "ldl.cli.training"
"""All that a run imports, once, in place of in every worker; ``ldl.cli`` is but the door to it."""

FOR_THE_RUN = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
"""Signals that terminals and SLURM send to all processes, of which the loaders' are to go on."""


def worker_context() -> BaseContext:
    """How loader processes are started: forked from a server that has no threads.

    A fork of the training process itself, with the threads of torch, gloo and loggers, can hang. A script that
    trains with loader processes needs the guard ``if __name__ == "__main__"``, as it does in Python 3.14.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    resource_tracker.ensure_running()  # which unblocks signals
    # The server inherits it: signals to all processes of a terminal or a job are the run's, which needs its batch.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_THE_RUN)
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


@atexit.register
def end_server() -> None:
    """End the server, which else goes on for seconds where it is still importing."""
    if pid := getattr(forkserver._forkserver, "_forkserver_pid", None):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start_worker(number: int, rank: int, seeded: bool) -> None:
    """Prepare a loader process: it ends with its training process, and the signals of the latter are not its own."""
    if seeded:
        # Lightning leaves that to the function of a loader that has one.
        pl_worker_init_function(number, rank)
    # In another process group than the run it can be ended by SIGTERM, as torch ends the slow ones.
    os.setpgrp()
    # As torch does by itself for its own threads: the processes share the cores.
    if cv2 := sys.modules.get("cv2"):
        cv2.setNumThreads(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # torch watches the server instead, which lives as long as its workers: neither would ever end.
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
