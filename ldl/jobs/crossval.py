"""Cross-validation: train and test every fold, in this process or others, and summarise them in one ``results.json``.

``crossvalidate`` is the Python API; ``run_crossval`` is ``--stage crossval``. A finished fold lies in ``fold_N`` under
the key of whatever decides it, and is not trained again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from filelock import FileLock
from rich.console import Console

from ldl.command.arguments import tokenize
from ldl.command.command_line import Command, parse_anew
from ldl.command.config import Config
from ldl.command.messages import user_errors
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.jobs.folds import FoldResult, Folds, all_folds, fold_folder
from ldl.jobs.identity import deciding_options, folds_key
from ldl.jobs.store import Key, Result, Store
from ldl.jobs.workers import OTHER_WORKER, PerProcess, Workers, check_one_process
from ldl.reports.files import write_json
from ldl.run import console, signals
from ldl.run.parts import Parts
from ldl.run.run import read_by, show
from ldl.run.run_dir import LOCK, choose_folder, cleanup_on_error, run_dir_lock, run_name
from ldl.run.training import Select, seed_everything
from ldl.task import Task

MAX_DRAWN = 10
"""Folds get charts of their own up to this number; more folds are small and take long to draw."""


def crossvalidate(
    make_task: Callable[[], Task],
    data: LDLDataModule,
    folds: Iterable[int] | None = None,
    seed: int | None = 0,
    trainer: Callable[[], pl.Trainer] | dict[str, Any] | None = None,
    folder: str | Path | None = None,
    select: Select = "last",
    rows: list[dict[str, np.ndarray]] | None = None,
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

    Examples:
        >>> import pandas as pd
        >>> from ldl import Task, crossvalidate
        >>> from ldl.data import TabularLDL
        >>> from ldl.heads import AAKNN
        >>> table = pd.DataFrame({"size": range(20), "label:no": range(20), "label:yes": range(20, 0, -1)})
        >>> table.to_csv("votes.csv", index=False)
        >>> quiet = {"enable_progress_bar": False, "enable_model_summary": False}
        >>> results = crossvalidate(lambda: Task(AAKNN()), TabularLDL("votes.csv", folds=2), trainer=quiet)
        taken from votes.csv: votes (counts layout, 20 items, 2 nominal labels, 20 votes an item), 1 features 'size'
        >>> len(results["folds"]), sorted(results["mean"])[:2]
        (2, ['accuracy', 'auc'])
    """
    seed_everything(seed)
    data.setup()
    every = all_folds(data)
    numbers = every if folds is None else [int(number) for number in folds]  # JSON has no numbers of numpy
    if not numbers or not set(numbers) <= set(every):
        raise LDLError(f"folds {numbers} must be numbers in 0..{every[-1]}, or None for all")
    if select == "best" and folder is None and not callable(trainer):
        raise LDLError("select 'best' needs a place for the checkpoints of each fold; give a folder, or take 'last'")
    run_dir = None if folder is None else Path(folder)
    draws = len(numbers) <= MAX_DRAWN
    runs = Folds(make_task, data, seed, trainer, run_dir, select, key, draws, quote)
    content, results = _train_missing(runs, numbers, each)
    if rows is not None:
        rows += [result.rows for result in results]
    return content


def _train_missing(
    folds: Folds, numbers: list[int], each: Callable[[dict[str, Any]], None] | None
) -> tuple[dict[str, Any], list[FoldResult]]:
    """Return the ``results.json`` of some folds, and the folds; those without a result are trained in this process."""
    results = {number: folds.read(number) for number in numbers}
    missing = [number for number, result in results.items() if result is None]
    task = None
    for position, number in enumerate(missing):
        task, result = folds.fit(number, missing[position:])
        results[number] = result
        if each is not None:
            each(result.content)
    if task is None or folds.data.fold != numbers[-1]:
        task = folds.restore(numbers[-1])
    tested = [result for result in results.values() if result is not None]
    return folds.combine(tested, task), tested


def run_crossval(command: Command) -> None:
    """Train and test every fold of a configuration in ``fold_0``, ``fold_1``, ...; finished folds are kept.

    Raises:
        LDLError: the run directory has other folds, or a fold failed.
    """
    config, values = command.config, command.config.values
    if values.ckpt_path is not None:
        raise LDLError("--stage crossval takes no --ckpt_path; to resume, use the same command with its --run_dir")
    workers = Workers(values.jobs, values.scheduler)
    if workers.are_remote:
        check_one_process(values, "--jobs and --scheduler train each fold")
    first = Parts(config.of_fold(0))
    data = first.data
    folder = choose_folder(values, data, config.head)
    with run_dir_lock(folder, read_by(first)), cleanup_on_error(folder), user_errors():
        signals.shutdown.again = f"the same command with --run_dir {folder} resumes it"
        seed_everything(config.seed)
        data.setup()
        text = first.config.text()
        key = folds_key(text, data)
        _renew_old_keys(folder, key, config, data)
        folds = configured_folds(config, data, folder, key)
        missing = [number for number in all_folds(data) if folds.read(number) is None]
        if len(missing) < data.num_folds:
            console.say(f"{data.num_folds - len(missing)} of {data.num_folds} folds are done")
        if workers.are_remote and missing:
            console.say(console.opening_elsewhere(config.head, data, str(workers)))
            console.say(console.held_out(data))
            run_dir = str(folder.absolute())
            remote = PerProcess(f"{run_dir} {key}", partial(_open, text, run_dir, key))
            _train_remotely(workers, remote, folds, missing, values.trainer.enable_progress_bar is not False)
        content, _ = _train_missing(folds, all_folds(data), console.report_fold)
        show(folder, content, data)


def _renew_old_keys(folder: Path, key: Key, config: Config, data: LDLDataModule) -> None:
    """Give folds of version 0.2.0 the present key if their ``config.yaml`` decides the same; for one release.

    The keys of that version, ``cell``, also counted options that change no result.
    """
    options = deciding_options(config.of_fold(0).text(data.chosen))
    if "files" in options:  # only the old key shows whether plugins and weights are those of that run
        return
    for path in folder.glob("fold_*/results.json"):
        with suppress(ValueError, TypeError, LDLError):  # reading the fold reports it
            if "cell" in json.loads(path.read_text(encoding="utf-8")):
                with FileLock(path.with_name(LOCK)):  # processes of torchrun find the fold at the same time
                    _renew_old_key(path, key, options)


def _renew_old_key(path: Path, key: Key, options: dict[str, Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    if {**content.pop("cell", {}), "options": key["options"]} == key:
        old = Command(tokenize(["-c", str(path.with_name("config.yaml"))])).config
        if deciding_options(old.of_fold(0).text()) == options:
            write_json(path, {"key": key, **content})


def configured_folds(config: Config, data: LDLDataModule, folder: Path, key: Key, quiet: bool = False) -> Folds:
    """Return the folds of a configuration.

    Args:
        config: The configuration.
        data: Its data module, set up.
        folder: The run directory.
        key: Whatever decides the results.
        quiet: Whether to print nothing.
    """
    values = config.values
    if quiet:
        values.trainer.enable_progress_bar = False
    announced = quiet

    def parts() -> Parts:
        group = run_name(folder, data, config.head)
        return Parts(config.of_fold(data.fold), data, fold_folder(folder, data.fold), group)

    def task_of_fold() -> Task:
        task = parts().task
        if not announced:
            console.say(console.pretrained(task.backbone))
        return task

    def trainer_of_fold() -> pl.Trainer:
        nonlocal announced
        trainer = parts().trainer
        if not announced:
            console.say(console.opening(config.head, data, trainer, "crossval"))
            console.say(console.held_out(data))
        announced = True  # the other folds have the same model
        return trainer

    draws = data.num_folds <= MAX_DRAWN
    return Folds(
        task_of_fold, data, config.seed, trainer_of_fold, folder, values.select, key, draws, values.quote_formulas
    )


def _train_remotely(workers: Workers, remote: PerProcess, folds: Folds, numbers: list[int], shows: bool) -> None:
    assert folds.folder is not None
    jobs = [replace(folds.job(number), run=partial(_train_fold, remote, number)) for number in numbers]
    with console.bars(shows and Console().is_terminal) as progress:
        bar = progress.add_task("folds", total=len(jobs))

        def report(content: Result) -> None:
            console.report_fold(content)
            progress.advance(bar)

        errors = Store(folds.folder).fill(jobs, workers, report)
    if errors:
        name, reason = next(iter(errors.items()))
        raise LDLError(
            f"{len(errors)} of {len(jobs)} folds failed ({', '.join(errors)}); {name}: {reason}; the same command "
            "with its --run_dir tries them again"
        )


def _train_fold(remote: PerProcess, number: int) -> Result:
    with user_errors():
        return remote.get().job(number).run()


def _open(text: str, folder: str, key: Key) -> Folds:
    config = parse_anew(["-c", text])
    data = config.instantiate("data")
    seed_everything(config.seed)
    data.setup()
    if folds_key(config.text(), data) != key:
        raise LDLError(OTHER_WORKER)
    return configured_folds(config, data, Path(folder), key, quiet=True)
