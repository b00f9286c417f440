"""Methods on trials of digits and faces, each measured once for all items."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from benchmarks.common.items import Work
from ldl.data.synthetic import Trials
from ldl.jobs.store import Result

TRIALS = 10
"""The paper's number of trials."""
Methods = Mapping[str, dict[str, Any]]
"""Options of the head by the name of a method."""
Trial = Callable[[Trials, str, dict[str, Any], Path | None], Result]
"""Function of the data with a selected trial, a method, its options, and a file for a chart or None."""


@lru_cache(maxsize=1)
def opened(module: type[Trials], quick: bool) -> Trials:
    """Return the images of all trials; few in a small form."""
    sizes: dict[str, Any] = {"pictures": 80} if quick else {}
    data = module(folds=TRIALS, **sizes)
    data.setup()
    return data


def found(work: Work, place: str, module: type[Trials], methods: Methods, trial: Trial) -> dict[str, list[Result]]:
    """Return by method a row per trial, stored in ``place``; of one trial in a small form."""
    shared = work.shared(place)

    def measure(number: int, method: str) -> Result:
        data = opened(module, work.quick)
        data.select_fold(number)
        chart = shared.folder / f"{re.sub(r'[^a-z0-9]+', '_', method.lower())}.png" if number == 0 else None
        return trial(data, method, methods[method], chart)

    results: dict[str, list[Result]] = {method: [] for method in methods}
    for number in range(1 if work.quick else TRIALS):
        for method, options in methods.items():
            key = {"method": method, "options": options, "trial": number, "quick": work.quick}
            results[method].append(shared.result(key, partial(measure, number, method)))
    return results


def values(rows: list[Result], name: str) -> tuple[float, ...]:
    """Return a result of each trial."""
    return tuple(row[name] for row in rows)
