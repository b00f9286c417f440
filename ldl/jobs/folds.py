"""The folds of a data module: each is trained and tested once, and its files are its result in the store."""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import pytorch_lightning as pl

from ldl import charts
from ldl.charts.drawing import captioned, warn_on_error
from ldl.checkpoint import read_checkpoint, replacing, save_atomically
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.jobs.store import Job, Key, Store
from ldl.metrics.stage import row_metrics
from ldl.reports.card import FinishedRun
from ldl.reports.rows import Report, caption, draw_raters, images_of
from ldl.reports.votes import compare_with_raters
from ldl.run import signals
from ldl.run.loggers import MetricsFile, finish
from ldl.run.results import columns, summarize, write_results
from ldl.run.resume import RankConsistency
from ldl.run.training import Select, fit_and_test, make_checkpoints, make_report, seed_everything
from ldl.task import Task


class FoldResult(NamedTuple):
    """The result of one fold.

    Attributes:
        content: Its ``results.json``.
        rows: Columns of its test rows, such as ``index`` (n,) and ``prediction`` (n, C); empty for maps.
    """

    content: dict[str, Any]
    rows: dict[str, np.ndarray]


@dataclass(frozen=True)
class Folds:
    """The folds of a data module, each with a new task from the same seed.

    Attributes:
        make_task: Function that returns an untrained task.
        data: The data module, set up.
        seed: Seed of every fold; None seeds nothing.
        trainer: Function that returns a new trainer, or arguments of ``Trainer``.
        folder: The run directory, or None.
        select: Weights to test.
        key: Whatever decides the results; None keeps no folds.
        draws: Whether each fold gets charts of its own.
        quote: Whether ``predictions.csv`` marks text that looks like a formula.
    """

    make_task: Callable[[], Task]
    data: LDLDataModule
    seed: int | None
    trainer: Callable[[], pl.Trainer] | dict[str, Any] | None
    folder: Path | None
    select: Select = "last"
    key: Key | None = None
    draws: bool = True
    quote: bool = False

    def job(self, number: int) -> Job:
        """Return the job that trains and tests a fold."""
        return Job(self.key, partial(self._content, number), f"fold {number}")

    def _content(self, number: int) -> dict[str, Any]:
        return self.fit(number)[1].content

    def read(self, number: int) -> FoldResult | None:
        """Return a finished fold, equal to the last bit, or None.

        Raises:
            LDLError: the fold has another key or is damaged.
        """
        if self.folder is None or (content := Store(self.folder).find(self.job(number))) is None:
            return None
        folder = fold_folder(self.folder, number)
        try:
            with np.load(folder / "rows.npz", allow_pickle=False) as arrays:
                rows = dict(arrays)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise LDLError(f"{folder} cannot be read: {error}; remove it to train the fold again") from error
        for fold in content["folds"]:  # JSON has null for NaN
            fold["metrics"] = {name: math.nan if value is None else value for name, value in fold["metrics"].items()}
        return FoldResult(content, rows)

    def fit(self, number: int, missing: Sequence[int] = ()) -> tuple[Task, FoldResult]:
        """Train and test a fold, and write it to its folder if there is one.

        Args:
            number: The fold.
            missing: Folds that this process will train, beginning with this one.

        Returns:
            The trained task and the result.
        """
        folder, data = self.folder and fold_folder(self.folder, number), self.data
        signals.shutdown.fold, signals.shutdown.step = number, 0
        if self.key is not None and folder is not None and process_rank() == 0:
            shutil.rmtree(folder, ignore_errors=True)  # the remains of a run that was killed here
        data.select_fold(number)
        seed_everything(self.seed)
        task = self._build_task()
        trainer = self.trainer() if callable(self.trainer) else self._make_trainer(self.trainer or {}, folder)
        if folder is not None:
            report = make_report(task, data, folder, self.draws, self.quote)
        else:  # the rows of maps are too many to keep
            report = pl.Callback() if task.gives_maps else CollectRows()
        trainer.callbacks += [SameFolds(*(missing or [number])), report]  # type: ignore[attr-defined]
        results: list[FoldResult] = []

        def write(entry: dict[str, Any], seconds: float) -> None:
            content = summarize(task, data, [entry], self.seed, seconds)
            results.append(FoldResult(content, getattr(report, "rows", {})))
            if folder is not None:
                self._write(folder, number, results[0], task)

        try:
            fit_and_test(trainer, task, data, self.select, write=write)
        finally:
            finish(trainer.loggers)
        return task, results[0]

    def _write(self, folder: Path, number: int, result: FoldResult, task: Task) -> None:
        # results.json comes last, since it marks the fold as finished.
        if self.key is not None and process_rank() == 0:
            with replacing(folder / "rows.npz") as file:
                np.savez(file, **result.rows)  # type: ignore[arg-type]
        content = self.job(number).entry(result.content)
        write_results(FinishedRun(folder, content, task, self.data, select=self.select))

    def _build_task(self) -> Task:
        task = self.make_task()
        task.build(self.data.labels, self.data.input_shape, raters=self.data)
        return task

    def _make_trainer(self, arguments: dict[str, Any], folder: Path | None) -> pl.Trainer:
        arguments = copy.deepcopy(arguments)
        callbacks = arguments.pop("callbacks", None) or []
        callbacks = callbacks if isinstance(callbacks, list) else [callbacks]
        defaults: dict[str, Any] = {"use_distributed_sampler": False, "logger": False, "enable_checkpointing": False}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            defaults |= {"logger": MetricsFile(folder), "enable_checkpointing": True, "default_root_dir": folder}
        arguments = defaults | arguments
        if arguments["enable_checkpointing"] and folder is not None:
            callbacks += make_checkpoints(folder, self.data, self.select)
        return save_atomically(pl.Trainer(**arguments, callbacks=callbacks))

    def restore(self, number: int) -> Task:
        """Return a task with the selected weights of a finished fold, if it has checkpoints; the fold is selected."""
        self.data.select_fold(number)
        task = self._build_task()
        if self.folder is not None:
            path = fold_folder(self.folder, number) / "checkpoints" / f"{self.select}.ckpt"
            if path.is_file():
                checkpoint = read_checkpoint(path)
                task.load_state_dict(checkpoint["state_dict"])
                task.on_load_checkpoint(checkpoint)
        return task

    def combine(self, results: list[FoldResult], task: Task) -> dict[str, Any]:
        """Return the ``results.json`` of all folds, and write it with charts if there is a folder.

        ``task`` is the task of any fold.
        """
        tested = [result.rows for result in results]
        entries = [result.content["folds"][0] for result in results]
        seconds = sum(result.content["fit_seconds"] for result in results)
        # A fold with a small validation set has no calibrated intervals.
        shared = [name for name in tested[0] if all(name in rows for rows in tested)]
        rows = {name: np.concatenate([each[name] for each in tested]) for name in shared}
        pooled = row_metrics(rows, task.labels) if rows else None
        raters = compare_with_raters(rows, task.labels) if "votes" in rows else None
        content = summarize(task, self.data, entries, self.seed, seconds, pooled, raters)
        if (folder := self.folder) is not None:
            write_results(FinishedRun(folder, content, task, self.data, select=self.select))
            if rows and process_rank() == 0:
                with captioned(caption(task.head, self.data, folder, len(entries))):
                    with warn_on_error("charts/folds.png"):
                        charts.folds(folder / "charts" / "folds.png", columns(content, task.labels))
                    draw = partial(images_of, self.data)
                    charts.overview(folder / "charts", rows, task.labels, draw, self.data.names)
                    draw_raters(folder, raters)
        return content


def all_folds(data: LDLDataModule, advice: str = "leave --stage crossval out") -> list[int]:
    """Return the numbers of the folds of a data module after ``setup``. Raises LDLError with advice for none."""
    if not data.num_folds:
        raise LDLError(f"{type(data).__name__} has a published split and no folds; {advice}")
    return list(range(data.num_folds))


def fold_folder(folder: Path, number: int) -> Path:
    """Return the folder of a fold of a cross-validation."""
    return folder / f"fold_{number}"


class SameFolds(RankConsistency):
    """Check that all processes of a run train the same folds: each finds the finished ones on its own disk."""

    def begins(self, numbers: list[int]) -> str:
        """Return the folds as text."""
        return f"trains fold{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


class CollectRows(Report):
    """Collect test rows in ``rows`` without writing them."""

    def __init__(self) -> None:
        super().__init__(Path(), draw=False)

    def write(self, trainer: pl.Trainer, task: Any) -> None:
        """Write nothing."""

    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Draw nothing."""
