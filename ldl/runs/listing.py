"""Tables of runs: as text, and as a CSV file."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from ldl.errors import LDLError, did_you_mean
from ldl.runs.reading import Run

MAIN = ("kl", "mae", "accuracy", "ods")
"""Measures of the listing, as far as any of the runs has them."""

HIGHER = {"cosine", "intersection", "fidelity", "accuracy", "auc", "ods", "ois", "ap", "r50", "disagreement"} | {
    f"crisp_{name}" for name in ("ods", "ois", "ap", "ac")
}
"""Measures that are better the higher they are, known here without torch; besides these cs0, cs1, ..."""

FACTS = ("when", "data", "protocol", "head", "stage", "folds")


def chosen(
    runs: Iterable[Run], head: str | None, data: str | None, stage: str | None, where: Sequence[str]
) -> list[Run]:
    """The runs of a head, of data, of a stage, and with options such as ``model.head.depth=7``.

    Names may be written in lower case. Raises LDLError for what is no ``option=value``.
    """
    pairs = [(name, value) for name, _, value in (text.partition("=") for text in where)]
    if bad := [text for text, (name, _) in zip(where, pairs) if not name or "=" not in text]:
        raise LDLError(f"--where {bad[0]!r} must be option=value, such as --where model.head.depth=7")

    def fits(run: Run) -> bool:
        names = ((head, run.head), (data, run.data), (stage, run.stage))
        return all(wanted is None or wanted.lower() == got.lower() for wanted, got in names) and all(
            name in run.options and same(run.options[name], value)
            for name, value in map(partial(_of_class, run), pairs)
        )

    return [run for run in runs if fits(run)]


def unheard_of(
    runs: Sequence[Run], head: str | None, data: str | None, stage: str | None, where: Sequence[str]
) -> list[str]:
    """A line for each filter of :func:`chosen` whose name no run has at all, with those that runs have."""
    lines = []
    for option, wanted, known in (
        ("head", head, {run.head for run in runs}),
        ("data", data, {run.data for run in runs}),
        ("stage", stage, {run.stage for run in runs}),
    ):
        if wanted is not None and wanted.lower() not in {name.lower() for name in known}:
            near = did_you_mean(wanted, known)
            lines.append(f"--{option} {wanted}: no run has it{near}; there are {', '.join(sorted(known))}")
    options = {name.removesuffix(".class_path") for run in runs for name in run.options}
    for name in (text.partition("=")[0] for text in where):
        if name.removesuffix(".class_path") not in options:
            lines.append(f"--where {name}: no run has this option{did_you_mean(name, options)}")
    return lines


def _of_class(run: Run, pair: tuple[str, str]) -> tuple[str, str]:
    """An option that is a class is named without ``class_path``."""
    name, value = pair
    return (name if name in run.options else f"{name}.class_path"), value


def same(value: object, text: str) -> bool:
    """Whether a value of a configuration is what somebody has typed."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text) == value
        except ValueError:
            return False
    word = {None: "null", True: "true", False: "false"}.get(value, value) if isinstance(value, bool | None) else value
    return str(word).lower() == text.lower() or str(word).rpartition(".")[2].lower() == text.lower()


def ordered(runs: list[Run], by: str) -> list[Run]:
    """The runs by ``when``, the newest first, by another fact, or by a measure, the best first, then those without.

    Raises LDLError for what none of them has.
    """
    if by == "when" or not runs:
        return runs
    if by == "folds":
        return sorted(runs, key=lambda run: len(run.folds))
    if by in FACTS:
        return sorted(runs, key=lambda run: facts(run)[FACTS.index(by)])
    known = {name for run in runs for name in run.mean}
    if by not in known:
        near = did_you_mean(by, [*FACTS, *known])
        raise LDLError(f"--sort {by}: no run has this measure{near}; give one of {', '.join([*FACTS, *sorted(known)])}")
    sign = direction(by) or 1

    def place(run: Run) -> tuple[bool, float]:
        value = run.mean.get(by, math.nan)
        return math.isnan(value), 0.0 if math.isnan(value) else sign * value

    return sorted(runs, key=place)


def direction(measure: str) -> int:
    """1 of a measure that is better the lower it is, -1 of one that is better the higher it is, 0 of others.

    Those of plugins, of which nobody here knows, are taken for errors.
    """
    if measure in HIGHER or re.fullmatch(r"cs\d+", measure):
        return -1
    return 0 if measure.startswith(("n_", "coverage", "bias", "interval_", "set_")) else 1


def facts(run: Run) -> list[str]:
    """The columns of :data:`FACTS`."""
    return [run.when, run.data, run.protocol, run.head, run.stage, str(len(run.folds) or "-")]


def figure(run: Run, measure: str) -> str:
    """A measure with its deviation over the folds."""
    value, deviation = run.mean.get(measure), run.std.get(measure)
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.4f}" if deviation is None or math.isnan(deviation) else f"{value:.4f} ± {deviation:.4f}"


def listing(runs: list[Run], by: str = "when") -> list[str]:
    """The runs as lines of a table."""
    shown = [name for name in MAIN if any(name in run.mean for run in runs)]
    shown += [by] if by not in (*FACTS, *shown) else []
    rows = [[*facts(run), *(figure(run, name) for name in shown), str(run.folder)] for run in runs]
    return aligned([[*FACTS, *shown, "folder"], *rows])


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows of a table, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def write_runs(file: Path, runs: list[Run]) -> None:
    """All facts and measures of the runs, as a CSV file. Raises LDLError where it cannot be written."""
    measures = list(dict.fromkeys(name for run in runs for name in run.mean))
    header = ["folder", *FACTS, "seed", "fit_seconds", *measures, *(f"{name}_std" for name in measures)]
    try:
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(header)
            for run in runs:
                numbers = [run.mean.get(name) for name in measures] + [run.std.get(name) for name in measures]
                told = [run.folder, *facts(run)[:-1], len(run.folds), run.seed, run.seconds, *numbers]
                writer.writerow("" if cell is None or cell != cell else cell for cell in told)
    except OSError as error:
        raise LDLError(f"--csv {file} cannot be written: {error.strerror}; give another file") from error
