"""Loaders of batches: instances put together to dicts of tensors, and the loader processes."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing import forkserver, get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric.utilities.seed import pl_worker_init_function
from torch.utils.data import DataLoader, Dataset

from ldl.batch import Batch, run_seed, usual_batch_size
from ldl.collective import current_collective
from ldl.data.sampler import DealtBatchSampler, Draw, Draws, draw
from ldl.data.storage import BatchColumn
from ldl.errors import LDLError
from ldl.plugins import discover, plugin_folders

PRELOADED = "ldl.run.run"
"""Module that imports all that a run needs, once in the server instead of in every loader process."""

FOR_THE_RUN = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
"""Signals that terminals and SLURM send to all processes, and that loader processes ignore."""


class Instances(Dataset[Batch]):
    """Instances of a data set, put together to whole batches.

    Args:
        columns: Columns of a batch besides inputs, for *all* instances of the data set, such as ``target`` (N, C).
        rows: Numbers of the served instances in the data set.
        source: A data module, or another object with its ``inputs``, and with their name in batches as ``serves``. None
            serves no inputs, such as when ``columns`` hold features.
        train: Apply random augmentation, and leave out columns whose attribute ``in_training`` is false.
    """

    def __init__(
        self, columns: Mapping[str, BatchColumn], rows: np.ndarray, source: Any = None, train: bool = False
    ) -> None:
        if train:  # some columns, such as single votes, may be for evaluation alone
            columns = {name: column for name, column in columns.items() if getattr(column, "in_training", True)}
        self.columns = columns
        self.rows = rows
        self.source = source
        self.train = train

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, draw: Draw) -> dict[str, Any]:
        return {name: column[0] for name, column in self.__getitems__([draw]).items()}

    def __getitems__(self, draws: Iterable[Draw]) -> Batch:
        drawn = Draws.of(draws)
        numbers = self.rows[drawn.rows]
        index = torch.from_numpy(numbers)
        self._prefetch(drawn.coming)
        batch = {name: column[index] for name, column in self.columns.items()}
        weight = torch.from_numpy(drawn.weights)
        batch |= {"index": index, "weight": weight * batch["weight"] if "weight" in batch else weight}
        if self.source is None:
            return batch
        return {self.source.serves: self.source.inputs(numbers, drawn.seeds, self.train), **batch}

    def _prefetch(self, coming: Callable[[int], np.ndarray] | None) -> None:
        if coming is not None:
            for reader in (*self.columns.values(), self.source):
                if prefetch := getattr(reader, "prefetch_rows", None):
                    prefetch(lambda count: self.rows[coming(count)])


class Guarded(Dataset[Any]):
    """A data set that returns the message of an LDLError as a batch, so that all processes can stop together."""

    def __init__(self, instances: Dataset[Any]) -> None:
        self.instances = instances

    def __reduce__(self) -> tuple[Any, ...]:
        # A loader process must import the plugins before it can unpickle a data set of theirs.
        return _unpickle, (list(plugin_folders), bytes(ForkingPickler.dumps(self.instances)))

    def __len__(self) -> int:
        return len(self.instances)  # type: ignore[arg-type]

    def __getitems__(self, draws: Iterable[Draw]) -> Any:
        try:
            if hasattr(self.instances, "__getitems__"):
                return self.instances.__getitems__(draws)
            return [self.instances[draw] for draw in draws]
        except LDLError as error:
            return {"error": str(error)}


def _unpickle(folders: list[Path], instances: bytes) -> Guarded:
    for folder in folders:
        discover(folder)
    return Guarded(pickle.loads(instances))


def collate(batch: Any) -> Any:
    """Return a whole batch unchanged; stack single instances."""
    return batch if isinstance(batch, dict) else torch.utils.data.default_collate(batch)


class ResumableLoader(DataLoader[Any]):
    """A loader that resumes in the middle of an epoch, and reports the death of a loader process as an error batch.

    Lightning requires the two methods of its state. The state is empty: the sampler gets its position from the training
    loop.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Ignore the state."""

    def __iter__(self) -> Any:
        # Not a generator: at the first batch, a resuming loop has already reset its counters.
        return _with_deaths(super().__iter__())


def _with_deaths(batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (RuntimeError, OSError, EOFError):
            # The server reports a death a little later than the connection breaks.
            sentinels = {worker.sentinel: worker.pid for worker in getattr(batches, "_workers", [])}
            dead = [sentinels[sentinel] for sentinel in wait(sentinels, timeout=1.0)]
            if not dead:
                raise
            # A batch, so that all processes receive the message.
            who = ", ".join(map(str, dead))
            advice = "as for lack of memory; lower data.num_workers or data.batch_size"
            batch = {"error": f"loader process {who} was killed or has crashed, {advice}"}
        yield batch


def serve(data: Any, rows: np.ndarray, train: bool, persistent: bool = False) -> ResumableLoader:
    """Return a loader of some instances of an ``LDLDataModule``.

    With Lightning's ``overfit_batches`` every epoch has the rows in their own order.

    Args:
        data: The data module.
        rows: The instances.
        train: Shuffle and augment them.
        persistent: Keep the loader processes between epochs.

    Raises:
        LDLError: The trainer would deal the batches to the processes a second time.
    """
    collective = current_collective()
    connector = getattr(data.trainer, "_accelerator_connector", None)
    if collective.world_size > 1 and getattr(connector, "use_distributed_sampler", False):
        raise LDLError(
            "Trainer(use_distributed_sampler=True) would divide the batches among the processes a second time; "
            "pass use_distributed_sampler=False, as the command line does"
        )
    overfits = getattr(data.trainer, "overfit_batches", 0) > 0
    batch_size = data.eval_batch_size
    if train:
        batch_size = data.batch_size or usual_batch_size(len(rows))
    sampler = DealtBatchSampler(
        len(rows),
        batch_size,
        shuffle=train and not overfits,
        seed=run_seed(),
        rank=collective.rank,
        world_size=collective.world_size,
        position=partial(_position, data) if train else lambda: (0, 0),
        often=data.often() if train and not overfits else None,
    )
    instances: Dataset[Any]
    if data.backbone_features is not None:
        instances = Instances({**data.columns, "features": data.backbone_features}, rows, train=train)
    elif data.views is not None:
        instances = Instances(data.columns, rows, data.views, train)
    else:
        instances = data.dataset(rows, train)
    seeded = bool(int(os.environ.get("PL_SEED_WORKERS", 0)))
    return ResumableLoader(
        Guarded(instances),
        batch_sampler=sampler,
        num_workers=data.num_workers,
        collate_fn=collate,
        prefetch_factor=data.prefetch if data.num_workers else None,
        persistent_workers=data.num_workers > 0 and persistent,
        multiprocessing_context=worker_context() if data.num_workers else None,
        worker_init_fn=partial(start_worker, rank=collective.rank, seeded=seeded) if data.num_workers else None,
        pin_memory=data.trainer is not None and data.trainer.strategy.root_device.type == "cuda",
    )


def _position(data: Any) -> tuple[int, int]:
    """Return the epoch to train and the number of its finished batches, also while a checkpoint is being resumed."""
    if data.trainer is None:
        return 0, 0
    begun = data.trainer.fit_loop.epoch_progress.current.ready
    batches = data.trainer.fit_loop.epoch_loop.batch_progress
    return (begun, 0) if batches.is_last_batch else (max(0, begun - 1), batches.current.processed)


def drawn_once(data: Any) -> np.ndarray:
    """Return the training rows in order; with balanced labels, some rows occur more than once and others not at all."""
    rows, often = data.split.train, data.often()
    return rows if often is None else rows[np.sort(draw(often, np.random.default_rng(run_seed())))]


def in_order(dataset: Dataset[Any], size: int, batch_size: int) -> DataLoader[Any]:
    """Return a loader of a whole data set in order, in one process."""
    sampler = DealtBatchSampler(size, batch_size, shuffle=False)
    return DataLoader(Guarded(dataset), batch_sampler=sampler, collate_fn=collate)


def worker_context() -> BaseContext:
    """Return the context of loader processes: forked from a server that has no threads.

    A fork of the training process, with the threads of torch, gloo and loggers, can hang. A script that trains with
    loader processes needs the guard ``if __name__ == "__main__"``, as in Python 3.14.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    resource_tracker.ensure_running()  # it unblocks signals
    # The server inherits the mask. A signal to all processes of a job is the run's, which still needs its batch.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_THE_RUN)
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


@atexit.register
def end_server() -> None:
    """End the server, which otherwise runs for seconds longer if it is still importing."""
    if pid := getattr(forkserver._forkserver, "_forkserver_pid", None):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start_worker(number: int, rank: int, seeded: bool) -> None:
    """Prepare a loader process: seed it, shield it from the run's signals, and end it with its training process."""
    if seeded:
        # Lightning does not seed a loader that has its own initialisation.
        pl_worker_init_function(number, rank)
    # In a process group of its own, the worker can be ended by SIGTERM, as torch ends slow workers.
    os.setpgrp()
    # The loader processes share the cores; torch limits its own threads by itself.
    if cv2 := sys.modules.get("cv2"):
        cv2.setNumThreads(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # torch watches the server, which lives as long as its workers: neither would end.
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
