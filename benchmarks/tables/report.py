"""Tables of the tabular benchmark, from its cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.common.folds import FOLDS
from ldl.comparison.figures import spread
from ldl.comparison.statistics import CONFIDENCE, against_best, best_of, verdict
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.reports.files import markdown

Cells = list[dict[str, Any]]

RATIO = 1 / (FOLDS - 1)
"""Tested rows for each row of the training part of a fold, also where some of the ten alone were measured."""

BOLD = (
    f"In bold: the best, and what a two-sided paired t-test over the folds does not tell from it at {CONFIDENCE:.0%}, "
    "corrected for the training rows that folds share (Nadeau & Bengio 2003) and for the number of methods (Holm)."
)


def folds_of(cells: Cells, name: str, method: str, measure: str) -> np.ndarray:
    """A measure of every fold, each averaged over its seeds; empty where the method failed or was not run."""
    by_fold = defaultdict(list)
    for cell in cells:
        if (cell["set"], cell["method"]) == (name, method) and "measures" in cell:
            by_fold[cell["fold"]].append(cell["measures"][measure])
    return np.array([np.mean(by_fold[fold]) for fold in sorted(by_fold)])


def full_tables(cells: Cells, sets: list[str], methods: list[str], protocol: str) -> str:
    """One table a set, :data:`BOLD` by column, then wins, ties and losses of each method."""
    text = [f"{protocol} {BOLD}", ""]
    for name in sets:
        values = {m: {s: folds_of(cells, name, m, s) for s in DISTRIBUTION_METRICS} for m in methods}
        values = {m: columns for m, columns in values.items() if len(columns["kl"])}
        bold = {s: leaders({m: columns[s] for m, columns in values.items()}, s) for s in DISTRIBUTION_METRICS}
        rows = [
            [method, *(_cell(folds, method in bold[s], seeds_of(cells, name, method)) for s, folds in columns.items())]
            for method, columns in values.items()
        ]
        text += [f"## {name}", "", markdown(["method", *DISTRIBUTION_METRICS], rows), ""]
    return "\n".join(text + _comparison(cells, sets, methods) + _failures(cells))


def seeds_of(cells: Cells, name: str, method: str) -> int:
    """How many seeds a method was measured with on a set."""
    return len({cell["seed"] for cell in cells if (cell["set"], cell["method"]) == (name, method)})


def summary(
    cells: Cells, sets: list[str], methods: list[str], measure: str, protocol: str,
    absent: Collection[tuple[str, str]] = (),
) -> str:  # fmt: skip
    """One measure of all methods and sets with cells, :data:`BOLD` by set; a dash for an ``absent`` method on a set."""
    known = {cell["set"] for cell in cells}
    sets = [name for name in sets if name in known]
    values = {m: {s: folds_of(cells, s, m, measure) for s in sets} for m in methods}
    bold = {name: leaders({m: columns[name] for m, columns in values.items()}, measure) for name in sets}
    rows = []
    for method, columns in values.items():
        row = [
            _cell(folds, method in bold[name], seeds_of(cells, name, method))
            or ("–" if (method, name) in absent else "")
            for name, folds in columns.items()
        ]
        if any(len(folds) for folds in columns.values()):
            rows.append([method, *row])
    return f"{protocol} {BOLD}\n\n{markdown([measure, *sets], rows)}\n"


def leaders(folds: Mapping[str, np.ndarray], measure: str) -> set[str]:
    """The methods with the best mean over their folds, by what is said in :data:`BOLD`.

    None where there is nothing to compare: of a single method that was measured, or of single folds.
    """
    p = against_best(there, measure, RATIO) if (there := {m: own for m, own in folds.items() if len(own)}) else {}
    if not np.isfinite(list(p.values())).any():
        return set()
    return {best_of(there, measure), *(method for method, value in p.items() if value >= 1 - CONFIDENCE)}


def _cell(folds: np.ndarray, bold: bool, seeds: int) -> str:
    text = spread(folds, 4)
    text = f"**{text}**" if text and bold else text
    return f"{text} ({seeds})" if text and seeds > 1 else text


def _comparison(cells: Cells, sets: list[str], methods: list[str]) -> list[str]:
    rows = []
    for ours in methods:
        row = [ours]
        for other in methods:
            pairs = [(folds_of(cells, s, ours, "kl"), folds_of(cells, s, other, "kl")) for s in sets]
            words = [verdict(a, b, "kl", RATIO) for a, b in pairs if len(a) and len(a) == len(b)]
            row.append("" if ours == other else "/".join(str(words.count(word)) for word in ("win", "tie", "loss")))
        rows.append(row)
    title = f"## Paired t-tests over the folds, KL, {CONFIDENCE:.0%}"
    what = (
        "Wins/ties/losses of the row against the column, over the sets; corrected for the training rows that folds "
        "share, each pair by itself."
    )
    return [title, "", what, "", markdown(["", *methods], rows), ""]


def _failures(cells: Cells) -> list[str]:
    failed = {(cell["method"], cell["error"]) for cell in cells if "error" in cell}
    return ["## Failed", "", *(f"- {method}: {error}" for method, error in sorted(failed)), ""] if failed else []


def ranks(cells: Cells, sets: list[str], methods: list[str]) -> tuple[list[str], np.ndarray]:
    """Methods that finished every set, and their ranks by mean KL on each, (sets, methods)."""
    means = {m: [folds_of(cells, s, m, "kl") for s in sets] for m in methods}
    whole = [m for m in methods if all(len(values) for values in means[m])]
    return whole, np.array([rankdata([means[m][number].mean() for m in whole]) for number in range(len(sets))])
