"""Cross-validation: every fold trained anew, one ``results.json`` over all."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl

from ldl import charts
from ldl.charts.drawing import captioned
from ldl.checkpoint import write_whole
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.metrics.rows import row_metrics
from ldl.reports.caption import caption
from ldl.reports.choice import report_for
from ldl.reports.rows import Report, pictures
from ldl.running import stopping
from ldl.running.folds import FoldOutcome, Key, Rows, fold_folder, read_fold, restore, write_fold
from ldl.running.metrics_file import MetricsFile
from ldl.running.results import columns, summarize, write_results
from ldl.running.together import Together
from ldl.running.tracking import finish
from ldl.running.training import Select, fit_and_test, make_checkpoints, seed_everything
from ldl.task import Task

MOST_DRAWN = 10
"""Folds get charts of their own up to this many; more, such as one a person, are small and take long to draw."""


def crossvalidate(
    make_task: Callable[[], Task],
    data: LDLDataModule,
    folds: Iterable[int] | None = None,
    seed: int | None = 0,
    trainer: Callable[[], pl.Trainer] | dict[str, Any] | None = None,
    folder: str | Path | None = None,
    select: Select = "last",
    rows: list[Rows] | None = None,
    each: Callable[[dict[str, Any]], None] | None = None,
    key: Key | None = None,
) -> dict[str, Any]:
    """Fit and test folds of a data set, each with a new task and from the same seed; the data are read once.

    Works in one process and in several: all of them go through the folds in step, and all get the outcome.

    Args:
        make_task: Makes a task that is not trained; ``data.fold`` says for which fold.
        data: The data module; it stays at the last fold.
        folds: Numbers of the folds, each once; None goes through all.
        seed: Seed of every fold; None seeds nothing.
        trainer: Makes a trainer that was not used, or is a dict of arguments of ``Trainer``, of which every fold gets a
            copy. Reports, and with a dict ``metrics.csv`` and checkpoints, are added where there is a folder.
        folder: Gets ``results.json``, ``charts/`` of all folds together, and what each leaves in ``fold_0``, ...; None
            writes nothing.
        select: Whether the last weights of a fold are tested or those that were best by validation KL; these need a
            folder, and a validation part.
        rows: Is filled with the test rows of each fold: columns such as ``index`` (n,), ``prediction`` and ``target``
            (n, C), ``value`` and ``predicted_value`` (n,), in the order of the data set.
        each: Is called after every fold that was trained with its ``results.json``.
        key: What the figures depend on. Folds that the folder has under the same key are not trained again.

    Returns:
        The content of ``results.json``: the entries of the ``folds``, their ``mean`` and ``std`` and, ``pooled``, the
        metrics over all test instances together, each of the same weight.

    Raises:
        LDLError: the data have no folds, or not these, or one is given twice; the best weights have no folder; or the
            folder has folds of another key.
    """
    seed_everything(seed)
    data.setup()
    every = all_folds(data)
    numbers = every if folds is None else list(folds)
    if not numbers:
        raise LDLError("folds [] has no fold; give at least one number, or None for all")
    if unknown := [number for number in numbers if number not in every]:
        raise LDLError(f"fold {unknown[0]} must be in 0..{every[-1]}, one of the {len(every)} folds")
    numbers = [int(number) for number in numbers]  # those of numpy are no JSON
    if twice := [number for number in numbers if numbers.count(number) > 1]:
        raise LDLError(f"fold {twice[0]} is given twice; give each once")
    if select == "best" and folder is None and not callable(trainer):
        raise LDLError("select 'best' needs a place for the checkpoints of each fold; give a folder, or take 'last'")
    place = None if folder is None else Path(folder)
    before = {} if place is None or key is None else {n: read_fold(fold_folder(place, n), key) for n in numbers}
    outcomes: list[FoldOutcome] = []
    for turn, number in enumerate(numbers):
        own = None if place is None else fold_folder(place, number)
        if (outcome := before.get(number)) is None:
            left = [n for n in numbers[turn:] if before.get(n) is None]
            task, outcome = fit_fold(number, make_task, data, seed, trainer, own, select, len(numbers), key, left)
            if each is not None:
                each(outcome.result)
        outcomes.append(outcome)
    if before.get(numbers[-1]) is not None:
        data.select_fold(numbers[-1])
        task = make_task()
        task.build(data.labels, data.input_shape)
        restore(task, own or Path(), select)
    results = conclude(outcomes, task, data, seed, place)
    if rows is not None:
        rows += [outcome.rows for outcome in outcomes]
    return results


def all_folds(data: LDLDataModule) -> list[int]:
    """The numbers of the folds of data that are set up. Raises LDLError where there are none."""
    if not data.num_folds:
        raise LDLError(f"{type(data).__name__} has a published split and no folds; leave --stage crossval out")
    return list(range(data.num_folds))


def conclude(
    outcomes: list[FoldOutcome], task: Task, data: LDLDataModule, seed: int | None, folder: Path | None
) -> dict[str, Any]:
    """The ``results.json`` of all folds, written with charts where there is a folder; ``task`` is one of them."""
    tested = [outcome.rows for outcome in outcomes]
    entries = [outcome.result["folds"][0] for outcome in outcomes]
    seconds = sum(outcome.result["fit_seconds"] for outcome in outcomes)
    # A fold whose validation part is too small has no calibrated intervals.
    shared = [name for name in tested[0] if all(name in part for part in tested)]
    together = {name: np.concatenate([part[name] for part in tested]) for name in shared}
    pooled = row_metrics(together, task.labels) if together else None
    results = summarize(task, data, entries, seed, seconds, pooled)
    if folder is not None:
        write_results(folder, results, task, data)
        if together and process_rank() == 0:
            with captioned(caption(task.head, data, folder, len(entries))):
                charts.folds(folder / "charts" / "folds.png", columns(results, task.labels))
                charts.overview(folder / "charts", together, task.labels, partial(pictures, data), data.names)
    return results


def fit_fold(
    number: int,
    make_task: Callable[[], Task],
    data: LDLDataModule,
    seed: int | None,
    trainer: Callable[[], pl.Trainer] | dict[str, Any] | None,
    folder: Path | None,
    select: Select,
    count: int,
    key: Key | None = None,
    left: Sequence[int] = (),
) -> tuple[Task, FoldOutcome]:
    """Fit and test one of ``count`` folds, from its seed, and write it where there is a ``folder`` of its own.

    ``left`` are the folds that are trained, from this one on, where others follow. The other arguments are those of
    :func:`crossvalidate`; returns the trained task, and what became of the fold.
    """
    stopping.watch.fold, stopping.watch.step = number, 0
    if key is not None and folder is not None and process_rank() == 0:
        # What was left by a run that was killed here.
        shutil.rmtree(folder, ignore_errors=True)
    data.select_fold(number)
    seed_everything(seed)
    task = make_task()
    task.build(data.labels, data.input_shape)
    made = trainer() if callable(trainer) else _make_trainer(trainer or {}, data, folder, select)
    report = _report(task, data, folder, draw=count <= MOST_DRAWN)
    made.callbacks += [SameFolds(*(left or [number])), report]  # type: ignore[attr-defined]
    try:
        entry, seconds = fit_and_test(made, task, data, select)
    finally:
        finish(made.loggers)
    outcome = FoldOutcome(summarize(task, data, [entry], seed, seconds), getattr(report, "rows", {}))
    if folder is not None:
        write_fold(folder, outcome, task, data, key)
    return task, outcome


class SameFolds(Together):
    """Holds the processes of a run to the same folds: each finds on its own disk which are done."""

    def begins(self, numbers: list[int]) -> str:
        """The folds that are trained."""
        return f"trains fold{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


class Collect(Report):
    """Collects ``rows``, and writes nothing."""

    def __init__(self) -> None:
        super().__init__(Path(), draw=False)

    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pass


def _report(task: Task, data: LDLDataModule, folder: Path | None, draw: bool) -> pl.Callback:
    """What writes down the test of a fold or, without a folder, collects its rows; those of maps are too many."""
    if folder is not None:
        return report_for(task, data, folder, draw)
    return pl.Callback() if task.gives_maps else Collect()


def _make_trainer(arguments: dict[str, Any], data: LDLDataModule, folder: Path | None, select: Select) -> pl.Trainer:
    """A trainer for one fold; what ``arguments`` say comes first."""
    arguments = copy.deepcopy(arguments)
    callbacks = arguments.pop("callbacks", None) or []
    callbacks = callbacks if isinstance(callbacks, list) else [callbacks]
    ours: dict[str, Any] = {"use_distributed_sampler": False, "logger": False, "enable_checkpointing": False}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        ours |= {"logger": MetricsFile(folder), "enable_checkpointing": True, "default_root_dir": folder}
    ours |= arguments
    if ours["enable_checkpointing"] and folder is not None:
        callbacks += make_checkpoints(folder, data, select)
    return write_whole(pl.Trainer(**ours, callbacks=callbacks))
