"""The printed output of a run: progress bars on a terminal, lines elsewhere, and lines at its start and end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ProgressBar, RichProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from typing_extensions import override

from ldl.backbones.base import Backbone
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.head import FittedHead
from ldl.metrics.registry import main_metrics
from ldl.protocols import CALIBRATION_ROWS, LEAST_UNITS

BAR = ("loss", "val_kl")
"""Metrics beside a bar."""

REFRESHES = 10
"""Refreshes of a bar per second. Lightning's 100 cost as much as the training of a small model."""

MOST_LINES = 10
"""About the number of lines during one training with short epochs."""

READ_SECONDS = 1
"""Seconds between two reads of the training loss by a bar; each read waits for the device."""

LINE_SECONDS = 60
"""Seconds after which an epoch gets a line in any case."""


def progress(one_of_many: bool = False, forced: bool = False) -> ProgressBar:
    """Return bars on a terminal, or if they are ``forced``, else lines; nothing of ``one_of_many`` stays at its end."""
    return Bar(one_of_many) if forced or Console().is_terminal else Lines(0 if one_of_many else MOST_LINES)


class Bar(RichProgressBar):
    """Lightning's bar with the losses, and without the version number of the logger.

    Lightning would read metrics that the task logs for the bar after every step, whether the bar shows them or not.

    Args:
        transient: Whether the bar vanishes at its end.
    """

    def __init__(self, transient: bool = False) -> None:
        super().__init__(refresh_rate=REFRESHES)
        self.transient = transient
        self._read, self._shown = 0.0, dict[str, Any]()

    @override
    def get_metrics(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> dict[str, Any]:
        if time.monotonic() - self._read >= READ_SECONDS:
            shown = super().get_metrics(trainer, pl_module)
            shown |= {name: float(value) for name, value in trainer.callback_metrics.items() if name in BAR}
            self._shown = {name: value for name, value in shown.items() if name != "v_num"}
            self._read = time.monotonic()
        return self._shown

    @override
    def on_train_epoch_end(self, *args: Any) -> None:
        self._read = 0.0
        super().on_train_epoch_end(*args)

    @override
    def on_validation_end(self, *args: Any) -> None:
        self._read = 0.0
        super().on_validation_end(*args)

    @override
    def teardown(self, *args: Any, **kwargs: Any) -> None:
        if self.progress is not None:
            self.progress.live.transient = self.transient
        super().teardown(*args, **kwargs)


class Lines(ProgressBar):
    """Prints one line per epoch, or fewer if there are many epochs, for logs and pipes.

    Args:
        most: Largest number of lines, besides those of epochs that take minutes; 0 for none.
    """

    def __init__(self, most: int = MOST_LINES) -> None:
        super().__init__()
        self.most = most
        self._reported, self._last = -1, time.monotonic()

    @property
    def is_enabled(self) -> bool:
        """False, so that heads that are fitted draw no bars."""
        return False

    @override
    def disable(self) -> None:
        self.most = 0

    @override
    def enable(self) -> None:
        self.most = MOST_LINES

    # The mean losses of an epoch are known only after all hooks at its end.
    @override
    def on_train_epoch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        done, total = trainer.current_epoch, trainer.max_epochs or 0
        due = total > 0 and done * self.most // total > (done - 1) * self.most // total
        if done and (due or time.monotonic() - self._last > LINE_SECONDS):
            self._report(trainer, done)

    @override
    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not isinstance(pl_module.head, FittedHead):
            self._report(trainer, trainer.current_epoch)

    def _report(self, trainer: pl.Trainer, done: int) -> None:
        if trainer.is_global_zero and self.most and done != self._reported:
            self._reported, self._last = done, time.monotonic()
            known = trainer.callback_metrics
            results = [f"{name} {float(known[name]):.4f}" for name in ("train_loss", "val_kl") if name in known]
            most = "" if trainer.max_epochs in (None, -1) else f" of {trainer.max_epochs}"
            print(f"epoch {done}{most}: {', '.join(results)}".removesuffix(": "), flush=True)


def bars(shows: bool) -> Progress:
    """Return progress bars over many fits."""
    parts = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    return Progress(*parts, TimeElapsedColumn(), TimeRemainingColumn(), disable=not shows)


def say(line: str) -> None:
    """Print a line unless it is empty, in the first process."""
    if line and process_rank() == 0:
        print(line, flush=True)


def opening(head: str, data: LDLDataModule, trainer: pl.Trainer, stage: str) -> str:
    """Return the first line of a run: stage, head, data, numbers of instances, device."""
    several = f" x {trainer.world_size}" if trainer.world_size > 1 else ""
    where = f"{trainer.strategy.root_device.type}{several}"
    train, val, test = (len(part) for part in (data.split.train, data.split.val, data.split.test))
    what = f"{stage}: {head} on {data.title}"
    if stage == "predict":
        fold = f" of fold {data.fold}" if data.num_folds > 1 else ""
        part = f" of {data.size:,} instances, the test set{fold}" if test < data.size else " instances"
        return f"{what}, {test:,}{part}, {where}"
    if stage == "crossval":
        return f"{what}, {data.protocol}, {data.num_folds} folds of {data.size:,} instances, {where}"
    fold = f", fold {data.fold} of {data.num_folds}" if data.num_folds > 1 else ""
    rows = f"{train:,} instances to learn from, {val:,} to validate, {test:,} to test"
    return f"{what}, {data.protocol}{fold}: {rows if stage == 'fit' else f'{test:,} instances'}, {where}"


def opening_elsewhere(head: str, data: LDLDataModule, workers: str) -> str:
    """Return the first line of a cross-validation in other processes."""
    what = f"{head.rpartition('.')[2]} on {data.title}, {data.protocol}"
    return f"crossval: {what}, {data.num_folds} folds of {data.size:,} instances, {workers}"


def held_out(data: LDLDataModule) -> str:
    """Return the line about the rows that ``data.val_fraction`` null holds out; empty for a given share or set."""
    train, val = data.split.train, data.split.val
    sets = getattr(data, "sets", None)
    if data.val_fraction is not None or (data.protocol == "published" and sets is not None and "val" in sets):
        return ""
    rows = len(train) + len(val)
    groups = [0, 0] if data.groups is None else [len(np.unique(data.groups[part])) for part in (val, train)]
    if len(val):
        apart = data.groups is not None and not np.isin(data.groups[val], data.groups[train]).any()
        units = f", {groups[0]:,} of {sum(groups):,} groups," * apart
        return f"{len(val):,} of {rows:,} rows{units} calibrate intervals and sets; data.val_fraction decides"
    tenth = f"{rows:,} rows is fewer than {CALIBRATION_ROWS}"
    if rows // 10 >= CALIBRATION_ROWS:
        tenth = f"{groups[1]:,} groups is fewer than {LEAST_UNITS}"
    return f"intervals and sets stay as predicted: a tenth of {tenth}; set data.val_fraction above 0 to calibrate them"


def origin(path: str, checkpoint: dict[str, Any]) -> str:
    """Return the line about the checkpoint that is loaded."""
    return f"weights: {path}, after step {checkpoint['global_step']:,}"


def pretrained(backbone: Backbone) -> str:
    """Return the line about pretrained weights of the backbone, empty if there are none."""
    found = [part.pretrained_from for part in backbone.modules() if isinstance(part, Backbone) and part.pretrained_from]
    return f"weights: {type(backbone).__name__} from {found[0]}" if found else ""


def report_fold(result: dict[str, Any]) -> None:
    """Print a line about a finished fold, from its ``results.json``."""
    fold = result["folds"][0]
    metrics = {name: fold["metrics"][name] for name in main_metrics() if name in fold["metrics"]}
    results = [*(f"{name} {value:.4f}" for name, value in metrics.items()), f"{result['fit_seconds']:.1f} s"]
    say(f"fold {fold['fold']}: {', '.join(results)}")


def closing(folder: Path) -> str:
    """Return the last line of a run: its files."""
    there = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir() if path.name[0] != ".")
    folds = [name for name in there if name.startswith("fold_")]
    beside = [name for name in there if name not in (*folds, "results.json", "wandb/")]
    beside += [f"fold_0/ to fold_{len(folds) - 1}/"] if len(folds) > 1 else folds
    return f"results: {folder / 'results.json'}, beside {', '.join(beside)}"
