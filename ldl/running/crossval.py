"""Cross-validation: every fold a run of its own, one ``results.json`` over all."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jsonargparse import Namespace

from ldl import charts
from ldl.collective import process_rank
from ldl.errors import LDLError
from ldl.metrics.rows import row_metrics
from ldl.reports.files import write_json
from ldl.reports.rows import Report, pictures
from ldl.running import results
from ldl.running.parser import LDLCLI
from ldl.running.run import Run

MOST_DRAWN = 10
"""Folds get charts of their own up to this many; more, such as one a person, are small and take long to draw."""


def crossval(cli: LDLCLI) -> None:
    """Fit and test every fold of the configured protocol, each from the same seed, in ``fold_0``, ``fold_1``, ...

    Beside the folds' means, ``results.json`` gets the metrics over all their test instances together, each of the
    same weight, and ``charts/`` shows these. The folds are one group in wandb. Works in one process and in several:
    all of them go through the folds in step.
    """
    if cli.config.ckpt_path is not None:
        raise LDLError("--stage crossval trains every fold anew; leave --ckpt_path out")
    if "fold" not in cli.config.data.init_args:
        name = cli.config.data.class_path.rpartition(".")[2]
        raise LDLError(f"{name} has a published split and no folds; leave --stage crossval out")
    # Chooses the directory and finds how many folds there are; it is not run.
    first = Run(cli, _of_fold(cli.config, 0))
    folds: list[dict[str, Any]] = []
    rows: list[dict[str, np.ndarray]] = []
    seconds = 0.0
    for number in range(first.data.num_folds):
        folder = first.folder / f"fold_{number}"
        few = first.data.num_folds <= MOST_DRAWN
        run = Run(cli, _of_fold(cli.config, number), folder, wandb_group=first.folder.name, draw=few)
        try:
            entry, fit_seconds = run.fit_and_test()
        finally:
            run.close()
        folds.append(entry)
        rows.append(_tested_rows(run))
        seconds += fit_seconds
        run.finish([entry], fit_seconds, table=False)
    if process_rank() == 0:
        _finish(first, folds, {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}, seconds)


def _finish(first: Run, folds: list[dict[str, Any]], rows: dict[str, np.ndarray], seconds: float) -> None:
    pooled = row_metrics(rows, first.task.labels)
    content = results.summarize(first.task, first.data, folds, first.seed, seconds, pooled)
    write_json(first.folder / "results.json", content)
    fetch = partial(pictures, first.data)
    charts.overview(first.folder / "charts", rows, first.task.labels, fetch, first.data.names)
    results.print_table(content, first.task.labels)
    print(f"results: {first.folder / 'results.json'}")


def _tested_rows(run: Run) -> dict[str, np.ndarray]:
    callbacks: list[Any] = run.trainer.callbacks  # type: ignore[attr-defined]
    return next(callback.rows for callback in callbacks if isinstance(callback, Report))


def _of_fold(config: Namespace, fold: int) -> Namespace:
    clone = config.clone()
    clone.stage = "fit"
    clone.data.init_args.fold = fold
    return clone
