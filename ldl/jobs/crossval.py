"""Cross-validation: train and test every fold, in this process or others, and summarise them in one ``results.json``.

``crossvalidate`` is the Python API; ``run_crossval`` is ``--stage crossval``. A finished fold lies in ``fold_N`` under
the key of whatever decides it, and is not trained again.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import pytorch_lightning as pl
from jsonargparse import Namespace
from rich.console import Console

from ldl import charts
from ldl.charts.drawing import captioned, spared
from ldl.checkpoint import read_checkpoint, replacing, write_whole
from ldl.collective import process_rank
from ldl.command.messages import refusals
from ldl.command.parser import LDLCLI
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.jobs.identity import OTHER_WORKER, check_one_process, folds_key
from ldl.jobs.jobs import PerProcess, Workers
from ldl.metrics.stage import row_metrics
from ldl.reports.choice import make_report
from ldl.reports.rows import Report, caption, draw_raters, images_of
from ldl.reports.votes import compare_with_raters
from ldl.run import console, signals
from ldl.run.loggers import MetricsFile, finish
from ldl.run.results import columns, summarize, write_results
from ldl.run.resume import RankConsistency
from ldl.run.run import make_task, make_trainer, read_by, seed_of, show
from ldl.run.run_dir import choose_folder, cleanup_on_error, run_dir_lock, run_name
from ldl.run.training import Select, fit_and_test, make_checkpoints, seed_everything
from ldl.task import Task

Parse = Callable[[list[str]], LDLCLI]
"""Parses the command line of a run, in any process."""
PredictionColumns = dict[str, np.ndarray]
Key = dict[str, str]

MAX_DRAWN = 10
"""Folds get charts of their own up to this number; more folds are small and take long to draw."""


class FoldResult(NamedTuple):
    """The result of one fold.

    Attributes:
        content: Its ``results.json``.
        rows: Columns of its test rows, such as ``index`` (n,) and ``prediction`` (n, C); empty for maps.
    """

    content: dict[str, Any]
    rows: PredictionColumns


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

    def read(self, number: int) -> FoldResult | None:
        """Return a finished fold, or None; see :func:`read_fold`."""
        if self.folder is None or self.key is None:
            return None
        return read_fold(fold_folder(self.folder, number), self.key)

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
        task = self.make_task()
        task.build(data.labels, data.input_shape)
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
                write_fold(folder, results[0], task, data, self.key, self.select)

        try:
            fit_and_test(trainer, task, data, self.select, write=write)
        finally:
            finish(trainer.loggers)
        return task, results[0]

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
        return write_whole(pl.Trainer(**arguments, callbacks=callbacks))

    def restore(self, number: int) -> Task:
        """Return a task with the selected weights of a finished fold, if it has checkpoints; the fold is selected."""
        self.data.select_fold(number)
        task = self.make_task()
        task.build(self.data.labels, self.data.input_shape)
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
        shared = [name for name in tested[0] if all(name in part for part in tested)]
        rows = {name: np.concatenate([part[name] for part in tested]) for name in shared}
        pooled = row_metrics(rows, task.labels) if rows else None
        raters = compare_with_raters(rows, task.labels) if "votes" in rows else None
        content = summarize(task, self.data, entries, self.seed, seconds, pooled, raters)
        if (folder := self.folder) is not None:
            write_results(folder, content, task, self.data, select=self.select)
            if rows and process_rank() == 0:
                with captioned(caption(task.head, self.data, folder, len(entries))):
                    with spared("charts/folds.png"):
                        charts.folds(folder / "charts" / "folds.png", columns(content, task.labels))
                    draw = partial(images_of, self.data)
                    charts.overview(folder / "charts", rows, task.labels, draw, self.data.names)
                    draw_raters(folder, raters)
        return content


def crossvalidate(
    make_task: Callable[[], Task],
    data: LDLDataModule,
    folds: Iterable[int] | None = None,
    seed: int | None = 0,
    trainer: Callable[[], pl.Trainer] | dict[str, Any] | None = None,
    folder: str | Path | None = None,
    select: Select = "last",
    rows: list[PredictionColumns] | None = None,
    each: Callable[[dict[str, Any]], None] | None = None,
    key: Key | None = None,
    quote: bool = False,
) -> dict[str, Any]:
    """Train and test the folds of a data module, each with a new task and from the same seed; the data are read once.

    It works in one process and in several, which train the folds in the same order and all return the results.

    Args:
        make_task: Function that returns an untrained task; ``data.fold`` is the fold.
        data: The data module; the last fold stays selected.
        folds: Numbers of the folds, each once; None for all.
        seed: Seed of every fold; None seeds nothing.
        trainer: Function that returns a new trainer, or arguments of ``Trainer``, which every fold copies. If there is
            a folder, reports are added, and with arguments also ``metrics.csv`` and checkpoints.
        folder: Folder for ``results.json``, ``charts/`` of all folds, and ``fold_0``, ...; None writes nothing.
        select: Weights to test: the last, or the best by validation KL, which need a folder and a validation set.
        rows: List that receives the test rows of each fold: columns such as ``index`` (n,), ``prediction`` and
            ``target`` (n, C), ``value`` and ``predicted_value`` (n,), in the order of the data set.
        each: Function of the ``results.json`` of every fold that was trained.
        key: Whatever decides the results. Folds in the folder with this key are not trained again.
        quote: Whether ``predictions.csv`` marks text that looks like a formula.

    Returns:
        The content of ``results.json``: the entries of the ``folds``, their ``mean`` and ``std``, and as ``pooled`` the
        metrics over all test rows together, each with the same weight.

    Raises:
        LDLError: the data have no folds, ``folds`` are wrong, ``select="best"`` has no folder, or the folder has folds
            with another key.

    Example:
        ``crossvalidate(lambda: Task(AAKNN()), TabularLDL("votes.npz"), trainer={"max_epochs": 1})["mean"]["kl"]``
    """
    seed_everything(seed)
    data.setup()
    every = all_folds(data)
    given = every if folds is None else list(folds)
    if not given or not set(given) <= set(every):
        raise LDLError(f"folds {given} must be numbers in 0..{every[-1]}, or None for all")
    numbers = [int(number) for number in given]  # JSON has no numbers of numpy
    if select == "best" and folder is None and not callable(trainer):
        raise LDLError("select 'best' needs a place for the checkpoints of each fold; give a folder, or take 'last'")
    place = None if folder is None else Path(folder)
    own = Folds(make_task, data, seed, trainer, place, select, key, len(numbers) <= MAX_DRAWN, quote)
    results = {number: own.read(number) for number in numbers}
    task = None
    while missing := [number for number, result in results.items() if result is None]:
        task, result = own.fit(missing[0], missing)
        results[missing[0]] = result
        if each is not None:
            each(result.content)
    if task is None or data.fold != numbers[-1]:
        task = own.restore(numbers[-1])
    found = [result for result in results.values() if result is not None]
    content = own.combine(found, task)
    if rows is not None:
        rows += [result.rows for result in found]
    return content


def all_folds(data: LDLDataModule) -> list[int]:
    """Return the numbers of the folds of a data module after ``setup``. Raises LDLError if there are none."""
    if not data.num_folds:
        raise LDLError(f"{type(data).__name__} has a published split and no folds; leave --stage crossval out")
    return list(range(data.num_folds))


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
        pass

    def on_test_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pass


# Folds on disk.


def fold_folder(folder: Path, number: int) -> Path:
    """Return the folder of a fold of a cross-validation."""
    return folder / f"fold_{number}"


def write_fold(
    folder: Path, result: FoldResult, task: Task, data: LDLDataModule, key: Key | None, select: Select
) -> None:
    """Write a fold in rank 0; ``results.json``, which marks it as finished, comes last.

    With a ``key`` the rows are written too, for :func:`read_fold`.
    """
    if key is not None and process_rank() == 0:
        with replacing(folder / "rows.npz") as file:
            np.savez(file, **result.rows)  # type: ignore[arg-type]
    content = result.content if key is None else {**result.content, "cell": key}
    write_results(folder, content, task, data, select=select)


def read_fold(folder: Path, key: Key) -> FoldResult | None:
    """Return a finished fold, equal to the last bit, or None.

    Raises:
        LDLError: the fold has another key or is damaged.
    """
    path = folder / "results.json"
    if not path.is_file():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = content.pop("cell", {})
        other = [name for name in key if found.get(name) != key[name]]
        if not other:
            with np.load(folder / "rows.npz", allow_pickle=False) as arrays:
                rows = dict(arrays)
    except (OSError, ValueError, AttributeError, EOFError, BadZipFile) as error:
        raise LDLError(f"{folder} cannot be read: {error}; remove it to train the fold again") from error
    if other:
        raise LDLError(
            f"{folder} has a fold of other {' and '.join(other)}; give another --run_dir, or use the same command as "
            "before"
        )
    for fold in content["folds"]:  # JSON has null for NaN
        fold["metrics"] = {name: math.nan if value is None else value for name, value in fold["metrics"].items()}
    return FoldResult(content, rows)


# The stage of the command line.


def run_crossval(cli: LDLCLI, parse: Parse) -> None:
    """Train and test every fold of a configuration in ``fold_0``, ``fold_1``, ...; finished folds are kept.

    Args:
        cli: The parsed command line.
        parse: Parses a command line in any process.

    Raises:
        LDLError: the run directory has other folds, or a fold failed.
    """
    config = cli.config
    if config.ckpt_path is not None:
        raise LDLError("--stage crossval takes no --ckpt_path; to resume, use the same command with its --run_dir")
    workers = Workers(config.jobs, config.scheduler)
    if workers.are_remote:
        check_one_process(config, "--jobs and --scheduler train each fold")
    data = cli.make_data(of_fold(config, 0))
    folder = choose_folder(config, data, _head_name(config))
    with run_dir_lock(folder, read_by(config, data)), cleanup_on_error(folder), refusals():
        signals.shutdown.again = f"the same command with --run_dir {folder} resumes it"
        seed_everything(seed_of(config))
        data.setup()
        text = cli.dump(of_fold(config, 0))
        folds = configured_folds(cli, data, folder, folds_key(text, data))
        missing = [number for number in all_folds(data) if folds.read(number) is None]
        if len(missing) < data.num_folds:
            console.say(f"{data.num_folds - len(missing)} of {data.num_folds} folds are done")
        if workers.are_remote and missing:
            console.say(console.opening_elsewhere(config.model.head.class_path, data, str(workers)))
            own = str(folder.absolute())
            remote = PerProcess(f"{own} {folds.key}", partial(_open, parse, text, own, folds.key))
            _train_remotely(workers, remote, missing, config.trainer.enable_progress_bar is not False)
        content = crossvalidate(
            folds.make_task,
            data,
            seed=folds.seed,
            trainer=folds.trainer,
            folder=folder,
            select=folds.select,
            each=console.report_fold,
            key=folds.key,
            quote=folds.quote,
        )
        show(folder, content, data)


def configured_folds(cli: LDLCLI, data: LDLDataModule, folder: Path, key: Key, quiet: bool = False) -> Folds:
    """Return the folds of a configuration.

    Args:
        cli: The parsed command line.
        data: Its data module, set up.
        folder: The run directory.
        key: Whatever decides the results.
        quiet: Whether to print nothing.
    """
    if quiet:
        cli.config.trainer.enable_progress_bar = False
    head, announced = _head_name(cli.config), quiet

    def task_of_fold() -> Task:
        task = make_task(cli, of_fold(cli.config, data.fold), data, {})
        if not announced:
            console.say(console.pretrained(task.backbone))
        return task

    def trainer_of_fold() -> pl.Trainer:
        nonlocal announced
        own = fold_folder(folder, data.fold)
        trainer = make_trainer(cli, of_fold(cli.config, data.fold), data, own, {}, run_name(folder, data, head))
        if not announced:
            console.say(console.opening(head, data, trainer, "crossval"))
        announced = True  # the other folds have the same model
        return trainer

    draws, quote, seed = data.num_folds <= MAX_DRAWN, cli.config.quote_formulas, seed_of(cli.config)
    return Folds(task_of_fold, data, seed, trainer_of_fold, folder, cli.config.select, key, draws, quote)


def of_fold(config: Namespace, fold: int) -> Namespace:
    """Return the configuration that trains one fold."""
    clone = config.clone()
    clone.stage = "fit"
    if "fold" in clone.data.init_args:
        clone.data.init_args.fold = fold
    return clone


def _head_name(config: Namespace) -> str:
    return str(config.model.head.class_path.rpartition(".")[2])


def _train_remotely(workers: Workers, remote: PerProcess, numbers: list[int], shows: bool) -> None:
    with console.bars(shows and Console().is_terminal) as progress:
        bar = progress.add_task("folds", total=len(numbers))

        def each(name: str, content: dict[str, Any]) -> None:
            console.report_fold(content)
            progress.advance(bar)

        failed = workers.run({f"fold {number}": partial(_train_fold, remote, number) for number in numbers}, each)
    if failed:
        name, reason = next(iter(failed.items()))
        raise LDLError(
            f"{len(failed)} of {len(numbers)} folds failed ({', '.join(failed)}); {name}: {reason}; the same command "
            "with its --run_dir tries them again"
        )


def _train_fold(remote: PerProcess, number: int) -> dict[str, Any]:
    with refusals():
        content: dict[str, Any] = remote.get().fit(number)[1].content
        return content


def _open(parse: Parse, config: str, folder: str, key: Key | None) -> Folds:
    cli = parse(["-c", config])
    data = cli.make_data(cli.config)
    seed_everything(seed_of(cli.config))
    data.setup()
    own = folds_key(cli.dump(cli.config), data)
    if own != key:
        raise LDLError(OTHER_WORKER)
    return configured_folds(cli, data, Path(folder), own, quiet=True)
