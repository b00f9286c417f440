"""Methods on trials of pictures, each measured once, whichever items ask for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmarks.boosting import groups, places
from benchmarks.boosting.places import Scale
from benchmarks.common.items import Work
from ldl.backbones.haar import Haar
from ldl.cells.store import Row
from ldl.data import MixedDigits, PosedFaces, ShiftedDigits, ShiftedFaces
from ldl.data.trials.trials import Trials

TRIALS = 10
"""As many as in the paper."""
DRAWS = (100, 101, 102)
"""Seeds of other draws of the same pictures, on the first trials of which settings are chosen."""
CHOICE_TRIALS = 1
SHIFTED: dict[str, type[Trials]] = {"digits": ShiftedDigits, "faces": ShiftedFaces}
MIXED: dict[str, type[Trials]] = {"digits": MixedDigits, "faces": PosedFaces}
SCALES = {"digits": Scale(28, 2), "faces": Scale(43, 3)}
BALANCED = {"digits": False, "faces": True}
"""Whether the Haar features of Section 3.2 are."""
Methods = Mapping[str, dict[str, Any]]
"""Options of the head by the name of a method."""


@lru_cache(maxsize=1)
def opened(module: type[Trials], draw_seed: int, quick: bool) -> Trials:
    """The pictures of a draw; few in small forms."""
    sizes: dict[str, Any] = {"pictures": 80} if quick else {}
    data = module(draw_seed=draw_seed, folds=max(TRIALS, 2), **sizes)
    data.setup()
    return data


@lru_cache(maxsize=1)
def features(module: type[Trials], draw_seed: int, quick: bool, number: int, balanced: bool) -> Tensor:
    """Haar features of all pictures, (size, F)."""
    data = opened(module, draw_seed, quick)
    haar = Haar(50 if quick else 1000, balanced=balanced, seed=number)
    haar.build(data.input_shape)
    return haar(data.images)


def found_places(work: Work, kind: str, methods: Methods, draws: tuple[int, ...] = (0,)) -> dict[str, list[Row]]:
    """What :func:`benchmarks.boosting.places.trial` tells, by method, a row a trial; of several draws the first."""
    scale = Scale(SCALES[kind].window, SCALES[kind].stride, 4, 50) if work.quick else SCALES[kind]

    def measure(draw_seed: int, number: int, method: str, chart: Path | None) -> Row:
        data = opened(SHIFTED[kind], draw_seed, work.quick)
        data.select_fold(number)
        return places.trial(data, scale, method, methods[method], chart)

    return _measured(work.shared(f"places_{kind}"), methods, draws, measure)


def found_groups(work: Work, kind: str, methods: Methods, draws: tuple[int, ...] = (0,)) -> dict[str, list[Row]]:
    """What :func:`benchmarks.boosting.groups.trial` tells, by method, a row a trial; of several draws the first."""

    def measure(draw_seed: int, number: int, method: str, chart: Path | None) -> Row:
        data = opened(MIXED[kind], draw_seed, work.quick)
        data.select_fold(number)
        rows = features(MIXED[kind], draw_seed, work.quick, number, BALANCED[kind])
        return groups.trial(data, rows, 4 if work.quick else 64, method, methods[method], chart)

    return _measured(work.shared(f"groups_{kind}"), methods, draws, measure)


def _measured(work: Work, methods: Methods, draws: tuple[int, ...], measure: Any) -> dict[str, list[Row]]:
    count = 1 if work.quick else TRIALS if draws == (0,) else CHOICE_TRIALS
    found: dict[str, list[Row]] = {method: [] for method in methods}
    for draw_seed in draws[:1] if work.quick else draws:
        for number in range(count):
            for method, options in methods.items():
                key = {"method": method, "options": options, "draw_seed": draw_seed, "trial": number}
                key |= {"quick": True} if work.quick else {}
                chart = (
                    work.folder / f"{re.sub(r'[^a-z0-9]+', '_', method.lower())}.png"
                    if (draw_seed, number) == (0, 0)
                    else None
                )
                found[method].append(work.cell(key, partial(measure, draw_seed, number, method, chart)))
    return found


def values(rows: list[Row], name: str) -> tuple[float, ...]:
    """One a trial."""
    return tuple(row[name] for row in rows)
