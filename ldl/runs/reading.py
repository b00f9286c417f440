"""What run directories tell, without torch: ``results.json``, ``config.yaml``."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ldl.errors import LDLError

WRONG = (KeyError, TypeError, ValueError, AttributeError)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Run:
    """One run directory.

    Attributes:
        folder: The directory.
        when: Local time of its name, else of its last file, as ``2026-11-22 15:20:31``.
        data: What the data are called.
        protocol: Of the folds.
        head: Class of the head.
        stage: fit, test, predict, crossval, compare or tune.
        seed: Seed of the run, or None.
        folds: An entry a fold, as in ``results.json``; none where there are no results.
        mean: The measures, over the folds.
        std: Their standard deviations over the folds; none of a single one.
        seconds: Of fitting, over all folds.
        options: The whole configuration, by dotted names without ``init_args``.
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


def find_runs(folder: Path) -> tuple[list[Run], list[str]]:
    """All runs in a folder and below, the newest first, and a line about each that cannot be read.

    What lies inside a run directory, such as the folds of a cross-validation, belongs to it. Raises LDLError.
    """
    if not folder.is_dir():
        raise LDLError(f"there is no folder {folder}; give one with runs, such as runs")
    runs, damaged = [], []
    for place in _run_folders(folder):
        try:
            runs.append(read_run(place))
        except LDLError as error:
            damaged.append(str(error))
    return sorted(runs, key=lambda run: (run.when, str(run.folder)), reverse=True), damaged


def _run_folders(folder: Path) -> Iterator[Path]:
    if any((folder / name).is_file() for name in ("results.json", "config.yaml", "comparison.json")):
        yield folder
    elif (first := folder / "fold_0").is_dir() and any(_run_folders(first)):
        yield folder  # a cross-validation that has not ended
    else:
        for below in sorted(folder.iterdir()):
            if below.is_dir() and not below.is_symlink() and not below.name.startswith("."):
                yield from _run_folders(below)


def read_run(folder: Path) -> Run:
    """A run directory. Raises LDLError where a file of it is damaged, naming it and why."""
    if (folder / "comparison.json").is_file():
        return _read_comparison(folder)
    first = folder if (folder / "config.yaml").is_file() else folder / "fold_0"
    config = _mapping(first / "config.yaml", lambda text: yaml.load(text, LOADER))  # noqa: S506  (a safe loader)
    results = _mapping(folder / "results.json", json.loads)
    if not config and not results:
        raise LDLError(f"{folder}: neither config.yaml nor results.json; is it a run directory?")
    options, several = dict(_flat(config)), (folder / "fold_0").is_dir()
    try:
        return Run(
            folder=folder,
            when=_when(folder),
            data=str(results.get("title") or _data(options)),
            protocol=str(results.get("protocol") or options.get("data.protocol", "")),
            head=str(results.get("head") or _class(options, "model.head")),
            stage="tune" if "tuning" in results else "crossval" if several else str(options.get("stage", "")),
            seed=results.get("seed", options.get("seed_everything")),
            folds=[{**fold, "metrics": _numbers(fold["metrics"])} for fold in results.get("folds", [])],
            mean=_numbers(results.get("mean", {})),
            std=_numbers(results.get("std", {})) if len(results.get("folds", [])) > 1 else {},
            seconds=float(results.get("fit_seconds", math.nan)),
            options=options,
        )
    except WRONG as error:
        raise LDLError(f"{folder / 'results.json'} is not as runs write it: {type(error).__name__} {error}") from None


def _read_comparison(folder: Path) -> Run:
    """A comparison of candidates, with the one that it recommends in place of the head."""
    content = _mapping(folder / "comparison.json", json.loads)
    try:
        name, path = str(content["data"]).split(maxsplit=1)
        taken = next(each for each in content["candidates"] if each["name"] == content["recommended"])
        return Run(
            folder=folder,
            when=_when(folder),
            data=Path(path).stem if name.startswith("Tabular") else name,
            protocol=str(content["protocol"]),
            head=str(taken["name"]),
            stage="compare",
            folds=[{"fold": fold["fold"], "metrics": _numbers(fold["measures"])} for fold in taken["folds"]],
            mean={"kl": float(taken["kl"]["mean"])},
            std={"kl": float(taken["kl"]["std"])},
        )
    except (StopIteration, *WRONG) as error:
        file = folder / "comparison.json"
        raise LDLError(f"{file} is not as comparisons write it: {type(error).__name__} {error}") from None


def _mapping(file: Path, parse: Any) -> dict[str, Any]:
    """The content of a file; an empty one where there is no file."""
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
            yield from _flat(item, ".".join(part for part in (name, str(key)) if part not in ("", "init_args")))
    else:
        yield name, value


def _numbers(measured: dict[str, Any]) -> dict[str, float]:
    """Measures by name; null, which stands for NaN, is NaN again."""
    return {name: math.nan if value is None else float(value) for name, value in measured.items()}


def _class(options: dict[str, Any], part: str) -> str:
    return str(options.get(f"{part}.class_path", options.get(part, ""))).rpartition(".")[2]


def _data(options: dict[str, Any]) -> str:
    """What the data of an older run are called."""
    path, name = options.get("data.path"), _class(options, "data")
    return Path(path).stem if path and name.startswith("Tabular") else name


def _when(folder: Path) -> str:
    if found := re.match(r"(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)", folder.name):
        return f"{found[1]} {':'.join(found.groups()[1:])}"
    last = max(
        path.stat().st_mtime for path in (folder / "results.json", folder / "config.yaml", folder) if path.exists()
    )
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(last))
