"""Training a task on arrays in silence, and without a trace in the process's random state."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.utilities.seed import isolate_rng

from ldl.checkpoint import AtomicCheckpointIO
from ldl.data.base import LDLDataModule
from ldl.running.quiet import WARNINGS
from ldl.running.training import seed_everything
from ldl.task import Task
from ldl.trust.calibration import CALIBRATION_KEY

SEED_VARIABLES = ("PL_GLOBAL_SEED", "PL_SEED_WORKERS")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from a seed, as a run with ``seed_everything`` does, and leave all generators as they were."""
    before = {name: os.environ.pop(name, None) for name in SEED_VARIABLES}
    with isolate_rng():
        try:
            seed_everything(seed)
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


@contextmanager
def silent() -> Iterator[None]:
    """Leave out what Lightning tells of every fit."""
    logger = logging.getLogger("pytorch_lightning")
    level = logger.level
    with warnings.catch_warnings():
        for message in WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        logger.setLevel(max(level, logging.WARNING))
        try:
            yield
        finally:
            logger.setLevel(level)


@contextmanager
def interruptible() -> Iterator[None]:
    """Hand Ctrl-C on: Lightning would end the process, and ignore it from there."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            signal.signal(signal.SIGINT, handler)
            raise error.__context__ from None
        raise


def train(task: Task, data: LDLDataModule, epochs: int, accelerator: str, verbose: bool) -> None:
    """Fit a task as ``train.py`` would, but on one device, writing nothing; it ends on the CPU, in evaluation mode."""
    data.setup()
    task.build(data.labels, data.input_shape)
    with silent(), interruptible():
        trainer = pl.Trainer(
            max_epochs=epochs,
            accelerator=accelerator,
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=verbose,
            use_distributed_sampler=False,
        )
        trainer.fit(task, datamodule=data)
    task.trainer = None
    task.cpu().eval()


def write_checkpoint(task: Task, path: str | Path) -> None:
    """Write what ``Task.load_from_checkpoint`` needs. Raises LDLError where the file cannot be written."""
    checkpoint: dict[str, Any] = {
        "epoch": 0,
        "global_step": 0,
        "pytorch-lightning_version": pl.__version__,
        "state_dict": task.state_dict(),
    }
    task.on_save_checkpoint(checkpoint)
    if task.calibration is not None:
        checkpoint[CALIBRATION_KEY] = task.calibration.to_state()
    AtomicCheckpointIO().save_checkpoint(checkpoint, path)
