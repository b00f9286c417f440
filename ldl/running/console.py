"""What a run says while it goes on: bars on a terminal, single lines elsewhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ProgressBar, RichProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ldl.backbones.base import Backbone
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.head import FittedHead

SHOWN = ("kl", "mae", "ods", "accuracy")
"""Measures of a fold's line, as far as there are such."""

BAR = ("loss", "val_kl")
"""What a bar shows."""

REFRESHES = 10
"""A second. Lightning's bars are drawn 100 times, which costs as much as a small model's training."""

MOST_LINES = 10
"""About the training of one model, where epochs are short."""

READS = 1
"""Seconds between two looks of a bar at the training loss, each of which waits for the device."""

PATIENCE = 60
"""Seconds after which a line tells of an epoch in any case."""


def progress(one_of_many: bool = False, asked: bool = False) -> ProgressBar:
    """What shows how far a trainer is: bars on a terminal, or where they are ``asked`` for, else lines.

    Of ``one_of_many`` nothing stays when it is done.
    """
    return Bar(one_of_many) if asked or Console().is_terminal else Lines(0 if one_of_many else MOST_LINES)


class Bar(RichProgressBar):
    """Lightning's bar with the losses, and without the number of the logger's run.

    What a task logs for the bar itself, Lightning reads after every step, shown or not: so the loss is not logged so.
    """

    def __init__(self, transient: bool = False) -> None:
        super().__init__(refresh_rate=REFRESHES)
        self.transient = transient
        self._read, self._reads = 0.0, True

    def on_train_batch_end(self, *args: Any) -> None:
        self._reads = time.monotonic() - self._read >= READS
        super().on_train_batch_end(*args)
        self._reads = True

    def _update_metrics(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._reads:
            super()._update_metrics(trainer, pl_module)
            self._read = time.monotonic()

    def get_metrics(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> dict[str, Any]:
        shown = {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}
        return shown | {name: float(value) for name, value in trainer.callback_metrics.items() if name in BAR}

    def _init_progress(self, trainer: pl.Trainer) -> None:
        super()._init_progress(trainer)
        if self.progress is not None:
            self.progress.live.transient = self.transient


class Lines(ProgressBar):
    """A line an epoch, of many epochs some, for logs and pipes.

    Args:
        most: At most so many lines, but for epochs that take minutes; 0 for none.
    """

    def __init__(self, most: int = MOST_LINES) -> None:
        super().__init__()
        self.most = most
        self._told, self._last = -1, time.monotonic()

    @property
    def is_enabled(self) -> bool:
        return False  # fits of heads draw no bars either

    def disable(self) -> None:
        self.most = 0

    def enable(self) -> None:
        self.most = MOST_LINES

    # The means of an epoch's losses are known after all that is called at its end.
    def on_train_epoch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        done, total = trainer.current_epoch, trainer.max_epochs or 0
        due = total > 0 and done * self.most // total > (done - 1) * self.most // total
        if done and (due or time.monotonic() - self._last > PATIENCE):
            self._tell(trainer, done)

    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not isinstance(pl_module.head, FittedHead):
            self._tell(trainer, trainer.current_epoch)

    def _tell(self, trainer: pl.Trainer, done: int) -> None:
        if trainer.is_global_zero and self.most and done != self._told:
            self._told, self._last = done, time.monotonic()
            known = trainer.callback_metrics
            figures = [f"{name} {float(known[name]):.4f}" for name in ("train_loss", "val_kl") if name in known]
            most = "" if trainer.max_epochs in (None, -1) else f" of {trainer.max_epochs}"
            print(f"epoch {done}{most}: {', '.join(figures)}".removesuffix(": "), flush=True)


def bars(shows: bool) -> Progress:
    """Progress bars over many fits."""
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*parts, TimeElapsedColumn(), TimeRemainingColumn(), disable=not shows)


def say(line: str) -> None:
    """Print a line that is not empty, in the first of several processes."""
    if line and process_rank() == 0:
        print(line, flush=True)


def opening(head: str, data: LDLDataModule, trainer: pl.Trainer, stage: str) -> str:
    """What is going to happen, to which model and data, where."""
    several = f" x {trainer.world_size}" if trainer.world_size > 1 else ""
    where = f"{trainer.strategy.root_device.type}{several}"
    train, val, test = (len(part) for part in (data.split.train, data.split.val, data.split.test))
    what = f"{stage}: {head} on {data.title}"
    if stage == "predict":
        fold = f" of fold {data.fold}" if data.num_folds > 1 else ""
        part = f" of {data.size:,} instances, the test part{fold}" if test < data.size else " instances"
        return f"{what}, {test:,}{part}, {where}"
    if stage == "crossval":
        return f"{what}, {data.protocol}, {data.num_folds} folds of {data.size:,} instances, {where}"
    fold = f", fold {data.fold} of {data.num_folds}" if data.num_folds > 1 else ""
    rows = f"{train:,} instances to learn from, {val:,} to validate, {test:,} to test"
    return f"{what}, {data.protocol}{fold}: {rows if stage == 'fit' else f'{test:,} instances'}, {where}"


def opening_elsewhere(head: str, data: LDLDataModule, workers: str) -> str:
    """What is going to happen in other processes."""
    what = f"{head.rpartition('.')[2]} on {data.title}, {data.protocol}"
    return f"crossval: {what}, {data.num_folds} folds of {data.size:,} instances, {workers}"


def origin(path: str, checkpoint: dict[str, Any]) -> str:
    """Which weights are loaded."""
    return f"weights: {path}, after step {checkpoint['global_step']:,}"


def pretrained(backbone: Backbone) -> str:
    """Which weights the backbone begins with; an empty line where it begins at random, or has none."""
    found = [part.pretrained_from for part in backbone.modules() if isinstance(part, Backbone) and part.pretrained_from]
    return f"weights: {type(backbone).__name__} from {found[0]}" if found else ""


def tell_fold(result: dict[str, Any]) -> None:
    """Print a line about a fold that is done, of its ``results.json``."""
    fold = result["folds"][0]
    known = {name: fold["metrics"][name] for name in SHOWN if name in fold["metrics"]}
    figures = [*(f"{name} {value:.4f}" for name, value in known.items()), f"{result['fit_seconds']:.1f} s"]
    say(f"fold {fold['fold']}: {', '.join(figures)}")


def closing(folder: Path) -> str:
    """Where the files of a run lie."""
    there = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir() if path.name[0] != ".")
    folds = [name for name in there if name.startswith("fold_")]
    beside = [name for name in there if name not in (*folds, "results.json", "wandb/")]
    beside += [f"fold_0/ to fold_{len(folds) - 1}/"] if len(folds) > 1 else folds
    return f"results: {folder / 'results.json'}, beside {', '.join(beside)}"
