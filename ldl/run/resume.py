"""How a run continues: which checkpoint it starts from, whether it can, and whether all processes agree.

A run that torchrun or SLURM starts again continues as with ``--ckpt_path last``. A checkpoint therefore stores the
launch that has written it, so that a new run in an old run's directory starts from the beginning. Counts of restarts
are not enough, since torchrun counts failed processes and not lost machines.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
import torch
from typing_extensions import override

from ldl.checkpoint import CHECKPOINT_KEY, LAST, check_same_inputs, last_of, read_checkpoint
from ldl.collective import current_collective
from ldl.command.config import Config
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError, SharedError
from ldl.labels import LabelSpace
from ldl.task import Task
from ldl.validation.checkpoint import check_weights

LAUNCH_KEY = "launch"
"""Entry of a checkpoint: its launch."""
UNNAMED = "none"
"""torchrun's ``--rdzv_id`` if none is given."""


def launch_of(config: Config) -> str | None:
    """Return a digest of job and options, the same at every restart of a launch; None outside torchrun and SLURM."""
    job = os.environ.get("SLURM_JOB_ID") or os.environ.get("TORCHELASTIC_RUN_ID")
    return None if job is None else hashlib.sha256(f"{job}\n{config.text()}".encode()).hexdigest()


def restarts() -> bool:
    """Return whether torchrun restarts this process if it fails."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", 0)) > 0


def checkpoint_of(config: Config) -> dict[str, Any]:
    """Return the checkpoint that a run starts from, empty for none; set the option ``ckpt_path`` to its path.

    Raises:
        LDLError: The checkpoint does not exist or cannot be read.
    """
    values = config.values
    path, run_dir = values.ckpt_path, values.run_dir
    if path == LAST and run_dir is None:
        raise LDLError("--ckpt_path last is checkpoints/last.ckpt of --run_dir; give --run_dir, or the path of a file")
    if path == LAST and values.stage != "fit":
        values.ckpt_path = str(last_of(run_dir))
        return read_checkpoint(values.ckpt_path)
    continues = path == LAST or (values.stage == "fit" and _may_be_restarted())
    if run_dir is not None and continues and os.path.isfile(last := last_of(run_dir)):
        checkpoint = read_checkpoint(last)
        if path == LAST or checkpoint.get(LAUNCH_KEY) == launch_of(config):
            values.ckpt_path = str(last)
            return checkpoint
    if path not in (None, LAST):
        return read_checkpoint(path)
    values.ckpt_path = None
    return {}


def _may_be_restarted() -> bool:
    """Return whether the launcher may have started this run before; all processes of a named job agree."""
    again = [name for name in ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT") if int(os.environ.get(name, 0))]
    named = "SLURM_JOB_ID" in os.environ or os.environ.get("TORCHELASTIC_RUN_ID", UNNAMED) != UNNAMED
    return bool(again) or (restarts() and named)


class RankConsistency(pl.Callback):
    """Raises SharedError if the processes of one run start with different numbers.

    A subclass states the meaning of the numbers in :meth:`begins`.

    Args:
        numbers: Numbers with which this process starts, at least one.
    """

    shared = "--run_dir"
    """Setting that must be the same on all machines."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def begins(self, numbers: list[int]) -> str:
        """Return in words how a process with these numbers begins."""
        raise NotImplementedError

    @override
    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        own = torch.tensor(self.numbers, device=trainer.strategy.root_device)
        every = [part.tolist() for part in current_collective().gather(own)]
        for rank, numbers in enumerate(every):
            if numbers != every[0]:
                raise SharedError(
                    f"process {rank} {self.begins(numbers)}, but process 0 {self.begins(every[0])}; let {self.shared} "
                    "lie on a disk that all machines share"
                )


class Launch(RankConsistency):
    """Stores the launch in checkpoints, and compares the start of all processes.

    Args:
        launch: Digest from :func:`launch_of`.
        step: Step of the checkpoint that this process starts from; -1 for none.
    """

    shared = "--run_dir, or --ckpt_path,"

    def __init__(self, launch: str | None, step: int) -> None:
        super().__init__(step)
        self.launch = launch

    def begins(self, numbers: list[int]) -> str:
        """Return whether a process starts a new run, or after which step it resumes."""
        return "starts a new run" if numbers[0] < 0 else f"resumes after step {numbers[0]}"

    @override
    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if self.launch is not None:
            checkpoint[LAUNCH_KEY] = self.launch


def restore_data(data: LDLDataModule, checkpoint: dict[str, Any], path: str) -> None:
    """Restore the state of a data module that is set up, such as its scaling.

    Raises:
        LDLError: The checkpoint's state does not fit the data.
    """
    with _one_line(path):
        data.prepare_as(checkpoint[CHECKPOINT_KEY].get("preprocessing"))
        if (state := checkpoint.get(type(data).__qualname__)) is not None:
            data.load_state_dict(state)


def labels_of(checkpoint: dict[str, Any], path: str) -> LabelSpace:
    """Return the labels of a checkpoint. Raises LDLError if their description is damaged."""
    with _one_line(path):
        return LabelSpace.from_dict(checkpoint[CHECKPOINT_KEY]["labels"])


def restore_task(task: Task, data: LDLDataModule, checkpoint: dict[str, Any], path: str) -> None:
    """Load a checkpoint into a task that is built for the data.

    Lightning loads all of it again. Weights are needed before, to extract the features of frozen layers once.

    Args:
        task: The task.
        data: The data module.
        checkpoint: The content of the checkpoint.
        path: Its file.

    Raises:
        LDLError: Labels, inputs or weights differ, or a state is damaged.
    """
    known, shape = labels_of(checkpoint, path), tuple(data.input_shape)
    with _one_line(path):
        check_same_inputs((known, shape), (data.labels, shape))
        check_weights(task, checkpoint["state_dict"])
        task.on_load_checkpoint(checkpoint)
        task.load_state_dict(checkpoint["state_dict"])


@contextmanager
def _one_line(path: str) -> Iterator[None]:
    """Report any error about a checkpoint in one line, since its entries may hold anything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        kind = "" if isinstance(error, LDLError) else f"{type(error).__name__} "
        raise LDLError(
            f"{path} does not fit: {kind}{' '.join(str(error).split())[:300]}; use the model, optimiser, scheduler and "
            "data it was saved with"
        ) from error
