"""Train and test once, for a run of the command line or a fold of a cross-validation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import LambdaCallback, ModelCheckpoint

from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.reports.maps import MapReport
from ldl.reports.rows import Report
from ldl.run.record import TrainedRows
from ldl.run.results import fold_result, served
from ldl.run.run_options import Select
from ldl.run.signals import StopCheckpoint
from ldl.task import Task

NOTHING_BEST = (
    "--select best: nothing is validated, so no weights are best; let training validate (trainer.max_epochs, "
    "check_val_every_n_epoch, val_check_interval, limit_val_batches), or take --select last"
)

Write = Callable[[dict[str, Any], float], None]
"""Takes the entry of ``results.json`` and the seconds of fitting, in every process."""


def seed_everything(seed: int | None) -> None:
    """Seed a run or a fold; None seeds nothing."""
    if seed is not None:
        pl.seed_everything(seed, workers=True, verbose=False)


def make_checkpoints(folder: Path, data: LDLDataModule, select: Select = "last") -> list[pl.Callback]:
    """Return the callbacks that write ``checkpoints/last.ckpt``, also at a signal, and ``best.ckpt`` by validation KL.

    Args:
        folder: The run directory.
        data: The data module, set up. Checkpoints store its training rows.
        select: Weights that are tested.

    Raises:
        LDLError: ``select`` is ``best`` and there is no validation set.
    """
    # At the end of the epoch and not of its validation: only from there does Lightning resume exactly.
    options: dict[str, Any] = {
        "dirpath": folder / "checkpoints",
        "save_on_train_epoch_end": True,
        "enable_version_counter": False,
        "auto_insert_metric_name": False,
    }
    last = ModelCheckpoint(filename="last", **options)
    others = [StopCheckpoint(folder / "checkpoints" / "last.ckpt"), TrainedRows(data)]
    if len(data.split.val):
        # After "best": a run that is killed between the two repeats the epoch and finds the same best weights.
        return [ModelCheckpoint(filename="best", monitor="val_kl", mode="min", **options), last, *others]
    if select == "best":
        raise LDLError("--select best needs a validation set; set data.val_fraction above 0")
    return [last, *others]


def make_report(task: Task, data: LDLDataModule, folder: Path, draw: bool = True, quote: bool = False) -> pl.Callback:
    """Return the callback that writes the results of a test or prediction.

    Args:
        task: The task, built.
        data: The data module; see ``LDLDataModule.report_class``.
        folder: The run directory.
        draw: Draw charts.
        quote: Write names that spreadsheet programs read as formulas with an apostrophe before them.
    """
    usual = MapReport if task.gives_maps else Report
    report: Callable[..., pl.Callback] = data.report_class(task.gives_maps) or usual
    return report(folder, draw, quote)


def fit_and_test(
    trainer: pl.Trainer,
    task: Task,
    data: LDLDataModule,
    select: Select = "last",
    ckpt_path: str | None = None,
    write: Write | None = None,
) -> tuple[dict[str, Any], float]:
    """Train, then test the selected weights.

    Args:
        trainer: The trainer; it needs the callbacks of :func:`make_checkpoints` if the best weights are selected.
        task: The task.
        data: The data module.
        select: Whether the last weights are tested or the best by validation KL.
        ckpt_path: Checkpoint to resume from.
        write: Writes the results, before charts are drawn.

    Returns:
        The entry of ``results.json`` and the seconds of fitting.
    """
    if select == "best" and not _validates(trainer):
        raise LDLError(NOTHING_BEST)
    start = time.perf_counter()
    trainer.fit(task, datamodule=data, ckpt_path=ckpt_path, weights_only=True)
    seconds = time.perf_counter() - start
    return test(trainer, task, data, best_weights(trainer) if select == "best" else None, write, seconds), seconds


def test(
    trainer: pl.Trainer,
    task: Task,
    data: LDLDataModule,
    ckpt_path: str | None = None,
    write: Write | None = None,
    seconds: float = 0.0,
) -> dict[str, Any]:
    """Test the current weights, or those of a checkpoint.

    Args:
        trainer: The trainer.
        task: The task.
        data: The data module.
        ckpt_path: Checkpoint of the same model.
        write: Writes the results, before charts are drawn.
        seconds: Seconds of fitting, for ``write``.

    Returns:
        The entry of ``results.json``.
    """
    entry: dict[str, Any] = {}

    def conclude() -> None:
        tested = served(data, trainer.limit_test_batches, sum(trainer.num_test_batches))
        entry.update(fold_result(data, trainer.callback_metrics, tested))
        for report in trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(report, Report):
                entry.update(report.entries(task))
        if write is not None:
            write(entry, seconds)

    # The first callback, since others draw charts.
    trainer.callbacks.insert(0, LambdaCallback(on_test_end=lambda *_: conclude()))  # type: ignore[attr-defined]
    trainer.test(task, datamodule=data, ckpt_path=ckpt_path, weights_only=True, verbose=False)
    if not entry:  # without batches, Lightning calls no hook
        conclude()
    return entry


def _validates(trainer: pl.Trainer) -> bool:
    epochs = math.inf if trainer.max_epochs in (None, -1) else trainer.max_epochs
    return bool(trainer.limit_val_batches) and epochs >= (trainer.check_val_every_n_epoch or 1)


def best_weights(trainer: pl.Trainer) -> str:
    """Return the path of the best checkpoint by validation KL. Raises LDLError if there was no validation."""
    # By key, since a callback of the configuration may have replaced that of make_checkpoints.
    key = ModelCheckpoint(monitor="val_kl", mode="min").state_key
    saved = (callback for callback in trainer.checkpoint_callbacks if isinstance(callback, ModelCheckpoint))
    best = next((callback.best_model_path for callback in saved if callback.state_key == key), "")
    if not best:
        raise LDLError(NOTHING_BEST)
    return best
