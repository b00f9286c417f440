"""Run directories read from ``results.json`` and ``config.yaml``: a table of them, and a comparison of two."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ldl.data.base import LDLDataModule
from ldl.errors import LDLError, check_one_of, did_you_mean
from ldl.metrics.registry import higher_is_better, main_metrics
from ldl.options import names_with_role
from ldl.plugins import discover
from ldl.run.run_options import is_neutral
from ldl.search.statistics import p_value
from ldl.validation.yaml_text import load_values

COLUMNS = ("when", "data", "protocol", "head", "stage", "folds")
DAMAGE_ERRORS = (KeyError, TypeError, ValueError, AttributeError, StopIteration)


@dataclass(frozen=True)
class RunSummary:
    """A run directory in short.

    Attributes:
        folder: The directory.
        when: Local time of its name, or of its last file, as ``2026-11-22 15:20:31``.
        data: Name of the data.
        protocol: Evaluation protocol.
        head: Class of the head; of a comparison, the recommended candidate.
        stage: ``fit``, ``test``, ``predict``, ``crossval``, ``compare`` or ``tune``.
        seed: Seed, or None.
        folds: Entries of the folds as in ``results.json``; empty without results.
        mean: Metrics, as means over the folds.
        std: Their standard deviations over the folds; empty for one fold.
        seconds: Time of fitting, over all folds.
        options: The configuration by dotted names without ``init_args``.
    """

    folder: Path
    when: str
    data: str
    protocol: str
    head: str
    stage: str
    seed: int | None = None
    folds: list[dict[str, Any]] = field(default_factory=list)
    mean: dict[str, float] = field(default_factory=dict)
    std: dict[str, float] = field(default_factory=dict)
    seconds: float = math.nan
    options: dict[str, Any] = field(default_factory=dict)


def find_runs(folder: Path) -> tuple[list[RunSummary], list[str]]:
    """Return all runs below a folder, the newest first, and a line about each that cannot be read.

    Directories inside a run directory, such as the folds of a cross-validation, belong to it. Raises LDLError.
    """
    if not folder.is_dir():
        raise LDLError(f"there is no folder {folder}; give one with runs, such as runs")
    runs, damaged = [], []
    for run_folder in _run_folders(folder):
        try:
            runs.append(read_run(run_folder))
        except LDLError as error:
            damaged.append(str(error))
    return sorted(runs, key=lambda run: (run.when, str(run.folder)), reverse=True), damaged


def _run_folders(folder: Path) -> Iterator[Path]:
    if any((folder / name).is_file() for name in ("results.json", "config.yaml", "comparison.json")):
        yield folder
    elif (first := folder / "fold_0").is_dir() and any(_run_folders(first)):
        yield folder  # an unfinished cross-validation
    else:
        for below in sorted(folder.iterdir()):
            if below.is_dir() and not below.is_symlink() and not below.name.startswith("."):
                yield from _run_folders(below)


def read_run(folder: Path) -> RunSummary:
    """Return a run directory. Raises LDLError for a damaged file."""
    is_comparison = (folder / "comparison.json").is_file()
    file = folder / ("comparison.json" if is_comparison else "results.json")
    first = folder if (folder / "config.yaml").is_file() else folder / "fold_0"
    content = _read_mapping(file, json.loads)
    config = {} if is_comparison else _read_mapping(first / "config.yaml", load_values)
    if not config and not content:
        raise LDLError(f"{folder}: neither config.yaml nor results.json; is it a run directory?")
    try:
        return _comparison(folder, content) if is_comparison else _run(folder, content, dict(_flat(config)))
    except DAMAGE_ERRORS as error:
        raise LDLError(f"{file} is not as ldl writes it: {type(error).__name__} {error}") from None


def _run(folder: Path, results: dict[str, Any], options: dict[str, Any]) -> RunSummary:
    several = (folder / "fold_0").is_dir()
    path, kind = options.get("data.path"), _class_name(options, "data")
    seed = results.get("seed", options.get("seed_everything"))
    return RunSummary(
        folder=folder,
        when=_when(folder),
        data=str(results.get("title") or (Path(path).stem if path and kind.startswith("Tabular") else kind)),
        protocol=str(results.get("protocol") or options.get("data.protocol", "")),
        head=str(results.get("head") or _class_name(options, "model.head")),
        stage="tune" if "tuning" in results else "crossval" if several else str(options.get("stage", "")),
        seed=None if seed is False else seed,
        folds=[{**fold, "metrics": _numbers(fold["metrics"])} for fold in results.get("folds", [])],
        mean=_numbers(results.get("mean", {})),
        std=_numbers(results.get("std", {})) if len(results.get("folds", [])) > 1 else {},
        seconds=float(results.get("fit_seconds", math.nan)),
        options=options,
    )


def _comparison(folder: Path, content: dict[str, Any]) -> RunSummary:
    kind, path = str(content["data"]).split(maxsplit=1)
    candidate = next(each for each in content["candidates"] if each["name"] == content["recommended"])
    return RunSummary(
        folder=folder,
        when=_when(folder),
        data=Path(path).stem if kind.startswith("Tabular") else kind,
        protocol=str(content["protocol"]),
        head=str(candidate["name"]),
        stage="compare",
        folds=[{"fold": fold["fold"], "metrics": _numbers(fold["measures"])} for fold in candidate["folds"]],
        mean={"kl": float(candidate["kl"]["mean"])},
        std={"kl": float(candidate["kl"]["std"])},
    )


def _read_mapping(file: Path, parse: Any) -> dict[str, Any]:
    try:
        content = parse(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:120]
        raise LDLError(f"{file} cannot be read: {type(error).__name__}: {reason}") from None
    if not isinstance(content, dict):
        raise LDLError(f"{file} holds a {type(content).__name__}, no mapping")
    return content


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            inner = name if key == "init_args" else f"{name}.{key}" if name else str(key)
            yield from _flat(item, inner)
    else:
        yield name, value


def _numbers(metrics: dict[str, Any]) -> dict[str, float]:
    return {name: math.nan if value is None else float(value) for name, value in metrics.items()}


def _class_name(options: dict[str, Any], name: str) -> str:
    return str(options.get(f"{name}.class_path", options.get(name, ""))).rpartition(".")[2]


def _when(folder: Path) -> str:
    if match := re.match(r"(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)", folder.name):
        return f"{match[1]} {':'.join(match.groups()[1:])}"
    files = (path for path in (folder / "results.json", folder / "config.yaml", folder) if path.exists())
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(max(path.stat().st_mtime for path in files)))


# The table.


def select(
    runs: Sequence[RunSummary], head: str | None, data: str | None, stage: str | None, where: Sequence[str]
) -> tuple[list[RunSummary], list[str]]:
    """Return the runs with the given names and options, and a line for each name or option that no run has.

    Args:
        runs: All runs.
        head: Class of the head, or None for all. Names are compared without regard to case.
        data: Name of the data, or None for all.
        stage: Stage, or None for all.
        where: Options such as ``model.head.depth=7``.

    Raises:
        LDLError: ``where`` has a text of another form.
    """
    matches, lines = list(runs), []
    for option, name in (("head", head), ("data", data), ("stage", stage)):
        if name is not None:
            matches = [run for run in matches if getattr(run, option).lower() == name.lower()]
            names = sorted({getattr(run, option) for run in runs})
            if name.lower() not in map(str.lower, names):
                near = did_you_mean(name, names)
                lines.append(f"--{option} {name}: no run has it{near}; there are {', '.join(names)}")
    options = {option.removesuffix(".class_path") for run in runs for option in run.options}
    for text in where:
        option, equals, value = text.partition("=")
        if not option or not equals:
            raise LDLError(f"--where {text!r} must be option=value, such as --where model.head.depth=7")
        matches = [run for run in matches if _has_option(run.options, option, value)]
        if option.removesuffix(".class_path") not in options:
            lines.append(f"--where {option}: no run has this option{did_you_mean(option, options)}")
    return matches, lines if runs else []


def _has_option(options: dict[str, Any], name: str, text: str) -> bool:
    """Return whether an option has a value as ``config.yaml`` spells it, or a class without its module."""
    if name in options:
        value = options[name]
        return text.lower() == ("null" if value is None else str(value).lower())
    return text.lower() == _class_name(options, name).lower()


def as_table(runs: Sequence[RunSummary], by: str = "when") -> pd.DataFrame:
    """Return all columns and metrics of runs, in the order of a column, or of a metric with the best first.

    Runs with the same entry keep their order. Raises LDLError if no run has the metric.
    """
    rows = [
        {
            "folder": str(run.folder),
            **{name: getattr(run, name) for name in COLUMNS[:-1]},
            "folds": len(run.folds),
            "seed": run.seed,
            "fit_seconds": run.seconds,
            **run.mean,
            **{f"{name}_std": value for name, value in run.std.items()},
        }
        for run in runs
    ]
    frame = pd.DataFrame(rows, columns=None if rows else ["folder", *COLUMNS, "seed"]).astype({"seed": "Int64"})
    if by == "when" or frame.empty:
        return frame
    check_one_of("--sort", by, frame.columns)
    return frame.sort_values(by, ascending=by in COLUMNS or _direction(by) >= 0, kind="stable")


def _direction(metric: str) -> int:
    """Return 1 if lower values of a metric are better, -1 if higher ones are, 0 if neither."""
    discover()  # plugins may have metrics
    return {True: -1, False: 1, None: 0}[higher_is_better(metric)]


def listing(table: pd.DataFrame, by: str = "when") -> list[str]:
    """Return the lines of a table of runs with their main metrics and the metric that orders them."""
    discover()  # plugins may have metrics
    metrics = [name for name in dict.fromkeys((*main_metrics(), by)) if name in table and name not in COLUMNS]
    rows = [[*COLUMNS, *metrics, "folder"]]
    for row in table.to_dict("records"):
        shown = ((row[name], row.get(f"{name}_std", math.nan)) for name in metrics)
        texts = (
            "-" if math.isnan(value) else f"{value:.4f}{'' if math.isnan(std) else f' ± {std:.4f}'}"
            for value, std in shown
        )
        rows.append([*(str(row[name] or "-") for name in COLUMNS), *texts, row["folder"]])
    return aligned(rows)


def aligned(rows: list[list[str]]) -> list[str]:
    """Return the rows of a table as lines with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]


# Two runs.


def find_run(name: str, runs: list[RunSummary]) -> RunSummary:
    """Return the run of a folder, or the only run whose path contains ``name``. Raises LDLError."""
    exact = [run for run in runs if run.folder.resolve() == Path(name).resolve() or run.folder.name == name]
    matches = exact or [run for run in runs if name in str(run.folder)]
    if len(matches) == 1:
        return matches[0]
    several = f"several runs have this name: {', '.join(str(run.folder) for run in matches[:4])}"
    raise LDLError(f"--compare {name}: {several if matches else 'no run has this name'}")


def comparison(first: RunSummary, second: RunSummary) -> list[str]:
    """Return lines that compare two runs: A minus B, with p of a paired t-test if their folds have the same rows."""
    lines = [f"A  {_title(first)}", f"B  {_title(second)}", "", *_differing_options(first, second), ""]
    names = [name for name in first.mean if name in second.mean and not name.startswith("n_")]
    if not names:
        return [*lines, "the runs have no metric in common"]
    reason = unpaired(first, second)
    header = ["metric", "A", "B", "A - B", *(["p"] if reason is None else []), "better"]
    rows = [_metric_row(name, first, second, reason is None) for name in names]
    test = f"p of a two-sided paired t-test over {len(first.folds)} folds, corrected for the training rows they share"
    return [*lines, *aligned([header, *rows]), "", test if reason is None else f"not paired: {reason}"]


def unpaired(first: RunSummary, second: RunSummary) -> str | None:
    """Return why the folds of two runs cannot be paired; None if they have the same rows."""
    if min(len(first.folds), len(second.folds)) < 2:
        return "both must be cross-validations"
    for run in (first, second):
        if not run.options:
            return f"the options of {run.folder} are not known"
    deciding = sorted(names_with_role(LDLDataModule, "path", "fold", "group", "label") - {"fold"})
    for name in ("data.class_path", *(f"data.{name}" for name in deciding)):
        if first.options.get(name) != second.options.get(name):
            return f"{name} is {first.options.get(name)} and {second.options.get(name)}"
    sizes = [[(fold["fold"], fold.get("n_test")) for fold in run.folds] for run in (first, second)]
    return None if sizes[0] == sizes[1] else "their folds test different numbers of rows"


def _metric_row(name: str, first: RunSummary, second: RunSummary, paired: bool) -> list[str]:
    a, b = first.mean[name], second.mean[name]
    lead = _direction(name) * (a - b)
    texts = [f"{a:.4f}", f"{b:.4f}", f"{a - b:+.4f}"]
    if paired:
        ours, other = (_fold_values(run, name) for run in (first, second))
        sizes = [(fold.get("n_test"), fold.get("n_train", 0) + fold.get("n_val", 0)) for fold in first.folds]
        are_known = all(map(all, sizes))
        ratio = float(np.mean([tested / trained for tested, trained in sizes])) if are_known else None
        texts.append(f"{p_value(ours, other, ratio):.3g}")
    return [name, *texts, "A" if lead < 0 else "B" if lead > 0 else "-"]


def _fold_values(run: RunSummary, metric: str) -> np.ndarray:
    return np.array([fold["metrics"].get(metric, math.nan) for fold in run.folds])


def _title(run: RunSummary) -> str:
    folds = f", {len(run.folds)} folds" if len(run.folds) > 1 else ""
    return f"{run.folder}: {run.head} on {run.data}, {run.protocol}{folds}, {run.when}"


def _differing_options(first: RunSummary, second: RunSummary) -> list[str]:
    if not (first.options and second.options):
        return ["the options are not known"]
    rows = [
        [name, *(str(run.options.get(name, "-")) for run in (first, second))]
        for name in dict.fromkeys([*first.options, *second.options])
        if name != "data.fold" and not is_neutral(name) and first.options.get(name) != second.options.get(name)
    ]
    return aligned([["option", "A", "B"], *rows]) if rows else ["the same options"]
