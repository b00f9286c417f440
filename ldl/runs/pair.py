"""Two runs beside each other: options that differ, measures, and a test where their folds are the same."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ldl.errors import LDLError
from ldl.runs.listing import aligned, direction
from ldl.runs.reading import Run

FOLDS = tuple(
    f"data.{name}"
    for name in (
        *("class_path", "path", "root", "protocol", "split_list", "folds", "fold_seed", "group_key", "value_key"),
        *("low", "high", "step", "detector", "skip_unreadable", "pictures", "draw_seed", "turns", "train_fraction"),
        *("digit", "positive_digits", "faces", "target_key"),
    )
)
"""Options that decide which rows are in which fold."""

LEFT_OUT = ("run_dir", "wandb", "data.fold", "stage", "trainer.logger", "trainer.default_root_dir")


def find_pair(names: list[str], runs: list[Run]) -> tuple[Run, Run]:
    """The runs that two names mean: folders, or words that are in one folder's name alone. Raises LDLError."""
    return _find(names[0], runs), _find(names[1], runs)


def _find(name: str, runs: list[Run]) -> Run:
    exact = [run for run in runs if run.folder.resolve() == Path(name).resolve() or run.folder.name == name]
    found = exact or [run for run in runs if name in str(run.folder)]
    if len(found) == 1:
        return found[0]
    told = f"; it is in the names of {', '.join(str(run.folder) for run in found[:4])}" if found else ""
    raise LDLError(f"--compare {name}: {'several runs have' if found else 'no run has'} this name{told}")


def comparison(first: Run, second: Run) -> list[str]:
    """The lines that compare two runs: A minus B, with p of a paired t-test over folds where these are the same."""
    lines = [f"A  {_about(first)}", f"B  {_about(second)}", "", *_options(first, second)]
    names = [name for name in first.mean if name in second.mean and not name.startswith("n_")]
    if not names:
        return [*lines, "", "no measure is known of both"]
    why = unpaired(first, second)
    header = ["measure", "A", "B", "A - B", *(["p"] if why is None else []), "better"]
    rows = [_row(name, first, second, why is None) for name in names]
    test = f"p of a two-sided paired t-test over {len(first.folds)} folds, corrected for the training rows they share"
    note = test if why is None else f"not paired: {why}"
    return [*lines, "", *aligned([header, *rows]), "", note]


def unpaired(first: Run, second: Run) -> str | None:
    """Why folds of two runs cannot be paired; None where they are the same rows."""
    if min(len(first.folds), len(second.folds)) < 2:
        return "both must be cross-validations"
    if (unknown := _unknown(first, second)) is not None:
        return unknown
    for name in FOLDS:
        if first.options.get(name) != second.options.get(name):
            return f"{name} is {first.options.get(name)} and {second.options.get(name)}"
    sizes = [[(fold["fold"], fold.get("n_test")) for fold in run.folds] for run in (first, second)]
    if sizes[0] != sizes[1]:
        return "their folds test different numbers of rows"
    return None


def _unknown(first: Run, second: Run) -> str | None:
    """Which run has no options that are known, such as a comparison of candidates; None where both have some."""
    return next((f"the options of {run.folder} are not known" for run in (first, second) if not run.options), None)


def _row(name: str, first: Run, second: Run, paired: bool) -> list[str]:
    from ldl.comparison.statistics import p_value

    a, b = first.mean[name], second.mean[name]
    lead = direction(name) * (a - b)
    better = "A" if lead < 0 else "B" if lead > 0 else "-"
    cells = [f"{value:.4f}" if math.isfinite(value) else "-" for value in (a, b)]
    cells.append(f"{a - b:+.4f}" if math.isfinite(a - b) else "-")
    if paired:
        ours, other = (np.array([fold["metrics"].get(name, math.nan) for fold in run.folds]) for run in (first, second))
        p = p_value(ours, other, _ratio(first))
        cells.append(f"{p:.3g}" if math.isfinite(p) else "-")
    return [name, *cells, better]


def _ratio(run: Run) -> float | None:
    """Tested rows for each row of the training part, the mean over the folds; None where results do not tell."""
    sizes = [(fold.get("n_test"), fold.get("n_train", 0) + fold.get("n_val", 0)) for fold in run.folds]
    return float(np.mean([tested / trained for tested, trained in sizes])) if all(map(all, sizes)) else None


def _about(run: Run) -> str:
    folds = f", {len(run.folds)} folds" if len(run.folds) > 1 else ""
    return f"{run.folder}: {run.head} on {run.data}, {run.protocol}{folds}, {run.when}"


def _options(first: Run, second: Run) -> list[str]:
    if (unknown := _unknown(first, second)) is not None:
        return [unknown]
    names = [*first.options, *(name for name in second.options if name not in first.options)]
    names = [name for name in names if not any(name == part or name.startswith(f"{part}.") for part in LEFT_OUT)]
    differ = [name for name in names if first.options.get(name) != second.options.get(name)]
    if not differ:
        return ["the same options"]
    return aligned([["option", "A", "B"], *([name, _said(first, name), _said(second, name)] for name in differ)])


def _said(run: Run, name: str) -> str:
    return str(run.options[name]) if name in run.options else "-"
