"""Training and testing once: what a run of the command line and a fold of a cross-validation have in common."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.running.results import fold_result, served
from ldl.running.stop_checkpoint import StopCheckpoint
from ldl.running.trained_rows import TrainedRows
from ldl.task import Task

Select = Literal["last", "best"]

NOTHING_BEST = (
    "--select best: nothing is validated, so no weights are best; let training validate (trainer.max_epochs, "
    "check_val_every_n_epoch, val_check_interval, limit_val_batches), or take --select last"
)


def seed_everything(seed: int | None) -> None:
    """Seed a run or a fold; None seeds nothing."""
    if seed is not None:
        pl.seed_everything(seed, workers=True, verbose=False)


def make_checkpoints(folder: Path, data: LDLDataModule, select: Select = "last") -> list[pl.Callback]:
    """What keeps ``checkpoints/last.ckpt``, also of a run that is told to end, and, by validation KL, ``best.ckpt``.

    They know what they were trained on.

    Raises:
        LDLError: the best is to be selected, and there is no validation part.
    """
    # At the end of the epoch, not of its validation: only from there does Lightning resume exactly.
    options: dict[str, Any] = {
        "dirpath": folder / "checkpoints",
        "save_on_train_epoch_end": True,
        "enable_version_counter": False,
        "auto_insert_metric_name": False,
    }
    last = ModelCheckpoint(filename="last", **options)
    others = [StopCheckpoint(folder / "checkpoints" / "last.ckpt"), TrainedRows(data)]
    if len(data.split.val):
        # The last comes last: killed before it, a resumed run trains the epoch again and finds the same best.
        return [ModelCheckpoint(filename="best", monitor="val_kl", mode="min", **options), last, *others]
    if select == "best":
        raise LDLError("--select best needs a validation part; set data.val_fraction above 0")
    return [last, *others]


def fit_and_test(
    trainer: pl.Trainer, task: Task, data: LDLDataModule, select: Select = "last", ckpt_path: str | None = None
) -> tuple[dict[str, Any], float]:
    """Train, then test the selected weights; returns the entry of ``results.json`` and the seconds of fitting.

    Args:
        trainer: The trainer, with :func:`make_checkpoints` where the best weights are selected.
        task: The task.
        data: The data module.
        select: Whether the last weights are tested or those that were best by validation KL.
        ckpt_path: Checkpoint to resume from.
    """
    start = time.perf_counter()
    trainer.fit(task, datamodule=data, ckpt_path=ckpt_path, weights_only=True)
    seconds = time.perf_counter() - start
    return measure(trainer, task, data, best_weights(trainer) if select == "best" else None), seconds


def measure(trainer: pl.Trainer, task: Task, data: LDLDataModule, ckpt_path: str | None = None) -> dict[str, Any]:
    """Test the task as it is, or a checkpoint; returns the entry of ``results.json``."""
    trainer.test(task, datamodule=data, ckpt_path=ckpt_path, weights_only=True, verbose=False)
    tested = served(data, trainer.limit_test_batches, sum(trainer.num_test_batches))
    return fold_result(data, trainer.callback_metrics, tested)


def best_weights(trainer: pl.Trainer) -> str:
    """The checkpoint that was best by validation KL. Raises LDLError where nothing was validated."""
    # Found by its key: a callback of the configuration may have taken the place of ours.
    key = ModelCheckpoint(monitor="val_kl", mode="min").state_key
    saved = (callback for callback in trainer.checkpoint_callbacks if isinstance(callback, ModelCheckpoint))
    best = next((callback.best_model_path for callback in saved if callback.state_key == key), "")
    if not best:
        raise LDLError(NOTHING_BEST)
    return best


def check_validates(trainer: pl.Trainer) -> None:
    """Raise LDLError where it is plain beforehand that a trainer will validate nothing, so that nothing is best."""
    epochs, every = trainer.max_epochs, trainer.check_val_every_n_epoch
    too_rare = epochs is not None and every is not None and 0 < epochs < every
    if 0 in (trainer.limit_val_batches, epochs, trainer.max_steps) or too_rare:
        raise LDLError(NOTHING_BEST)
