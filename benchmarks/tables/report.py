"""Tables of the tabular benchmark, from its results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import numpy as np
from scipy.stats import rankdata

from benchmarks.common.data import FOLDS
from ldl.jobs.store import Result
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.reports.files import markdown
from ldl.search.statistics import CONFIDENCE, against_best, best_of, spread, verdict

Results = list[Result]

RATIO = 1 / (FOLDS - 1)
"""Test rows per training row of a fold."""

BOLD = (
    "Bold: the best method, and each method whose difference from the best is not significant in a two-sided paired "
    f"t-test over the folds at {CONFIDENCE:.0%}. The test is corrected for the training rows that folds share "
    "(Nadeau & Bengio 2003), and for the number of methods by Holm's method."
)


def folds_of(results: Results, name: str, method: str, metric: str) -> np.ndarray:
    """Return a metric of every fold, each averaged over its seeds; empty if the method failed or was not run."""
    by_fold = defaultdict(list)
    for row in results:
        if (row["set"], row["method"]) == (name, method) and "measures" in row:
            by_fold[row["fold"]].append(row["measures"][metric])
    return np.array([np.mean(by_fold[fold]) for fold in sorted(by_fold)])


def full_tables(results: Results, sets: list[str], methods: list[str], protocol: str) -> str:
    """Return a table per set, :data:`BOLD` by column, then wins, ties and losses of each method, and failures."""
    text = [f"{protocol} {BOLD}", ""]
    for name in sets:
        values = {m: {s: folds_of(results, name, m, s) for s in DISTRIBUTION_METRICS} for m in methods}
        values = {m: columns for m, columns in values.items() if len(columns["kl"])}
        bold = {s: leaders({m: columns[s] for m, columns in values.items()}, s) for s in DISTRIBUTION_METRICS}
        rows = [
            [m, *(_shown(folds, m in bold[s], _seeds(results, name, m)) for s, folds in columns.items())]
            for m, columns in values.items()
        ]
        text += [f"## {name}", "", markdown(["method", *DISTRIBUTION_METRICS], rows), ""]
    failed = {(row["method"], row["error"]) for row in results if "error" in row}
    failures = ["## Failed", "", *(f"- {method}: {error}" for method, error in sorted(failed)), ""] if failed else []
    return "\n".join(text + _comparison(results, sets, methods) + failures)


def summary(
    results: Results, sets: list[str], methods: list[str], metric: str, protocol: str,
    absent: Collection[tuple[str, str]] = (),
) -> str:  # fmt: skip
    """Return one metric of all methods and sets, :data:`BOLD` by set; a dash for an ``absent`` method on a set."""
    known = {row["set"] for row in results}
    sets = [name for name in sets if name in known]
    values = {m: {s: folds_of(results, s, m, metric) for s in sets} for m in methods}
    bold = {name: leaders({m: columns[name] for m, columns in values.items()}, metric) for name in sets}
    rows = []
    for method, columns in values.items():
        row = [
            _shown(folds, method in bold[name], _seeds(results, name, method))
            or ("–" if (method, name) in absent else "")
            for name, folds in columns.items()
        ]
        if any(len(folds) for folds in columns.values()):
            rows.append([method, *row])
    return f"{protocol} {BOLD}\n\n{markdown([metric, *sets], rows)}\n"


def leaders(folds: Mapping[str, np.ndarray], metric: str) -> set[str]:
    """Return the methods with the best mean over their folds, as :data:`BOLD` says; none of single methods or folds."""
    p = against_best(there, metric, RATIO) if (there := {m: own for m, own in folds.items() if len(own)}) else {}
    if not np.isfinite(list(p.values())).any():
        return set()
    return {best_of(there, metric), *(method for method, value in p.items() if value >= 1 - CONFIDENCE)}


def _seeds(results: Results, name: str, method: str) -> int:
    return len({row["seed"] for row in results if (row["set"], row["method"]) == (name, method)})


def _shown(folds: np.ndarray, bold: bool, seeds: int) -> str:
    text = spread(folds, 4)
    text = f"**{text}**" if text and bold else text
    return f"{text} ({seeds})" if text and seeds > 1 else text


def _comparison(results: Results, sets: list[str], methods: list[str]) -> list[str]:
    rows = []
    for ours in methods:
        row = [ours]
        for other in methods:
            pairs = [(folds_of(results, s, ours, "kl"), folds_of(results, s, other, "kl")) for s in sets]
            words = [verdict(a, b, "kl", RATIO) for a, b in pairs if len(a) and len(a) == len(b)]
            row.append("" if ours == other else "/".join(str(words.count(word)) for word in ("win", "tie", "loss")))
        rows.append(row)
    title = f"## Paired t-tests over the folds, KL, {CONFIDENCE:.0%}"
    what = (
        "Wins/ties/losses of the row against the column, over the sets; corrected for the training rows that folds "
        "share, each pair by itself."
    )
    return [title, "", what, "", markdown(["", *methods], rows), ""]


def ranks(results: Results, sets: list[str], methods: list[str]) -> tuple[list[str], np.ndarray]:
    """Return the methods that finished every set, and their ranks by mean KL on each, (sets, methods)."""
    means = {m: [folds_of(results, s, m, "kl") for s in sets] for m in methods}
    whole = [m for m in methods if all(len(values) for values in means[m])]
    return whole, np.array([rankdata([means[m][number].mean() for m in whole]) for number in range(len(sets))])
