"""Table 3 of Chen et al. 2018: which method is faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Any, TypeVar

from benchmarks.common.data import FOLDS
from benchmarks.common.items import Claim, Statement, Work
from benchmarks.structrf.methods import METHODS, PUBLISHED, SMALL, fit_forest, rows_of
from ldl.jobs.store import Result
from ldl.methods.forest.grower import ADAPTIVE, EXACT, GrowthRules, grow_trees
from ldl.protocols import kfold

T = TypeVar("T")

STEPS = 4
"""Timed iterations of SA-IIS, of 200 that take equally long."""
TESTS = 5
"""Repeats of a test, of which the median counts."""
TREES = 10
"""Trees that are grown by every midpoint and by the adaptive step."""


def timed(function: Callable[..., T], *arguments: object, **options: object) -> tuple[float, T]:
    """Return the processor seconds of a call and its result."""
    before = time.process_time()
    found = function(*arguments, **options)
    return time.process_time() - before, found


def spent(work: Work, name: str) -> Result:
    """Return the seconds to train and to test on fold 0 of each method, and to train by each search."""

    def measure() -> Result:
        features, target = rows_of(name)
        split = kfold(len(target), FOLDS, 0, 0)
        train, test = (features[split.train], target[split.train]), features[split.test]
        fit_forest(train[0][:50], train[1][:50], trees=1)  # compiles
        row: Result = {}
        for method in ("StructRF", "RF", "SA-BFGS", "SA-IIS"):
            options: dict[str, Any] = SMALL[method] if work.quick else {}
            times = 1
            if method == "SA-IIS" and not work.quick:
                options, times = {"iterations": STEPS}, 200 // STEPS
            training, predict = timed(METHODS[method], *train, **options)
            predict(test[:2])  # imports
            row[method] = [times * training, median(timed(predict, test)[0] for _ in range(TESTS))]
        rows, distributions = (array.numpy() for array in train)
        for way, kind in (("every midpoint", EXACT), ("adaptive", ADAPTIVE)):
            rules = GrowthRules(kind, 20, 2, 1, 0.0, features.shape[1], 0.25, 8.0, 1)
            row[way], _ = timed(list, grow_trees(rows, distributions, rules, range(1 if work.quick else TREES)))
        return row

    return work.result({"set": name}, measure)


def table_3(work: Work) -> Iterator[Claim]:
    """Judge orders of times over the sets."""
    names = ("SJAFFE",) if work.quick else tuple(PUBLISHED["table_3"])
    rows = {name: spent(work, name) for name in names}
    for what, slower, faster, part in (
        ("SA-BFGS trains faster than SA-IIS", "SA-IIS", "SA-BFGS", 0),
        ("StructRF trains faster than SA-BFGS", "SA-BFGS", "StructRF", 0),
        ("RF trains faster than SA-BFGS", "SA-BFGS", "RF", 0),
        ("RF trains faster than StructRF", "StructRF", "RF", 0),
        ("testing StructRF takes longer than testing SA-BFGS", "StructRF", "SA-BFGS", 1),
    ):
        holds = all(row[faster][part] < row[slower][part] for row in rows.values())
        words = ", ".join(f"{name} {row[faster][part]:.3g} and {row[slower][part]:.3g} s" for name, row in rows.items())
        yield Statement(what, holds, words, _printed(names, faster, slower, part), exact=False)
    words = ", ".join(f"{name} {row['adaptive']:.3g} and {row['every midpoint']:.3g} s" for name, row in rows.items())
    yield Statement(
        "the adaptive step trains faster than every midpoint",
        all(row["adaptive"] < row["every midpoint"] for row in rows.values()), words,
        _printed(names, "StructRF*", "StructRF", 0), exact=False,
    )  # fmt: skip
    ours = {name: row["StructRF"][0] for name, row in rows.items()}
    theirs = {name: _seconds(name, "StructRF", 0) for name in names}
    yield Statement(
        "StructRF trains on one core in no more than the printed seconds",
        all(ours[name] <= theirs[name] for name in names),
        ", ".join(f"{name} {value:.3g} s" for name, value in ours.items()),
        ", ".join(f"{name} {value:g} s" for name, value in theirs.items()), exact=False,
    )  # fmt: skip


def _seconds(name: str, method: str, part: int) -> float:
    methods = ("SA-IIS", "SA-BFGS", "RF", "RF*", "StructRF", "StructRF*")
    return float(PUBLISHED["table_3"][name].split()[2 * methods.index(method) + part])


def _printed(names: Iterable[str], faster: str, slower: str, part: int) -> str:
    pairs = [(name, _seconds(name, faster, part), _seconds(name, slower, part)) for name in names]
    return ", ".join(f"{name} {fast:g} and {slow:g} s" for name, fast, slow in pairs)
