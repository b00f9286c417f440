"""Rare ages, and ages that training never saw: Figures 7 and 3 of Huang, Loy & Tang 2016, in folds of whole persons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.common.claims import Claim, Number
from benchmarks.common.items import Work
from benchmarks.dsna.ages import AVERAGE, FOREST, OBLIQUE, ONE, SHIPPED, oblique
from benchmarks.dsna.persons import People, Setting, better, grid, read_people
from ldl.cells.store import Row
from ldl.charts.drawing import new_figure, save

FOLDS, STEP = 5, 5
OLD = 40
INNER = 25
"""Where settings are chosen, the ages from here to ``OLD`` are those that training did not see."""

ESTIMATES: dict[str, Setting] = {AVERAGE: {"average": True}, FOREST: {}, SHIPPED: ONE}
WAYS: dict[str, tuple[Setting, list[Setting]]] = {
    "weights that may leave the anchor": (
        OBLIQUE,
        [{**ONE, **free} for free in grid(attraction=[0.02, 0.1, 0.5], sparsity=[0.01, 0.05])],
    ),
    "ten rounds, of which each goes on from the last": (
        OBLIQUE,
        [{**ONE, "rounds": 10, **more} for more in grid(clusters=[1, 3], attraction=[0.1, 0.5])],
    ),
    "leaves of up to 80 rows": (
        {**OBLIQUE, "trees": 20, "min_samples": 80},
        [{**ONE, **free} for free in grid(attraction=[0.02, 0.5], width=[0.1, 0.3])],
    ),
}
"""Of each way to extrapolate the forest, and what is chosen from."""

Parts = list[tuple[np.ndarray, np.ndarray]]
"""Training rows and the rows that are tested."""


def figure3(work: Work) -> Iterator[Claim]:
    """Ages unseen, one by one and all old ones together."""
    people = read_people(work.quick, protocol="group_exclusive", folds=FOLDS)
    values = people.values

    def one_by_one(train: np.ndarray, test: np.ndarray) -> Parts:
        return [(train[values[train] % STEP != rest], test[values[test] % STEP == rest]) for rest in range(STEP)]

    def together(train: np.ndarray, test: np.ndarray) -> Parts:
        return [(train[values[train] < OLD], test[values[test] >= OLD])]

    single = _predictions(work, people, "one by one", one_by_one)
    yield from _errors("age unseen, all ages", people, single)
    rare = {name: np.where(values >= OLD, predicted, np.nan) for name, predicted in single.items()}
    yield from _compared(f"age unseen, {OLD} and over", people, rare)
    yield from _compared(f"all ages from {OLD} unseen", people, _predictions(work, people, "together", together))
    for name, (setting, options) in WAYS.items():
        found = _predictions(work, people, name, together, setting, options)
        yield from _compared(f"all ages from {OLD} unseen, {name}", people, found, attempt=True)


def figure7(work: Work) -> Iterator[Claim]:
    """Rare ages that training saw."""
    people = read_people(work.quick, protocol="group_exclusive", folds=FOLDS)
    values = people.values
    found = _predictions(work, people, "rare", lambda train, test: [(train, test[values[test] >= OLD])])
    yield from _compared(f"age, {OLD} and over", people, found)
    figure, axis = new_figure(5, 4.4)
    axis.axline((OLD, OLD), slope=1, color="0.5", linewidth=1)
    for name, predicted in found.items():
        axis.scatter(values, predicted, s=12, label=name)
    axis.set(xlabel="true age in years", ylabel="predicted", title="FG-NET, rare ages")
    axis.legend()
    save(figure, work.folder / "rare.png")


def _predictions(
    work: Work,
    people: People,
    name: str,
    parts: Callable[[np.ndarray, np.ndarray], Parts],
    setting: Setting = OBLIQUE,
    options: list[Setting] | None = None,
) -> dict[str, np.ndarray]:
    """What each estimate has for the tested rows of all folds, else NaN, (N,). Of ``options`` each fold chooses one."""
    setting = {**setting, "trees": 2} if work.quick else setting
    found = {estimate: np.full(len(people.values), np.nan) for estimate in ESTIMATES}
    for fold in range(FOLDS):
        key: Row = {"case": name, "setting": setting, "fold": fold, "options": options or [ONE]}
        cell = work.cell(key, partial(_fold, people, fold, parts, setting, options or [ONE]))
        for estimate, predicted in cell["predicted"].items():
            found[estimate][cell["rows"]] = predicted
    return found


def _fold(
    people: People,
    fold: int,
    parts: Callable[[np.ndarray, np.ndarray], Parts],
    setting: Setting,
    options: list[Setting],
) -> Row:
    people.data.select_fold(fold)
    train, test = (np.intersect1d(part, people.rows) for part in (people.data.split.train, people.data.split.test))
    chosen = options[0] if len(options) == 1 else options[_best(people, train, setting, options)]
    estimates = {**ESTIMATES, SHIPPED: chosen}
    rows: list[int] = []
    predicted: dict[str, list[float]] = {name: [] for name in estimates}
    for known, asked in parts(train, test):
        if not len(asked):
            continue
        rows += asked.tolist()
        for name, values in zip(estimates, oblique(people)(known, asked, setting, list(estimates.values()))):
            predicted[name] += values.tolist()
    return {"rows": rows, "predicted": predicted, "chosen": chosen}


def _best(people: People, train: np.ndarray, setting: Setting, options: list[Setting]) -> int:
    """Chosen on a third of the training persons, by ages that are hidden from the others in the same way."""
    values, held = people.values[train], people.persons[train] % 3 == 0
    known, asked = train[~held & (values < INNER)], train[held & (values >= INNER) & (values < OLD)]
    predicted = oblique(people)(known, asked, setting, options)
    return int(np.argmin([np.abs(part - people.values[asked]).mean() for part in predicted]))


def _errors(name: str, people: People, found: dict[str, np.ndarray], attempt: bool = False) -> Iterator[Claim]:
    for which, predicted in found.items():
        error = float(np.nanmean(np.abs(predicted - people.values)))
        yield Number(f"{name}: {which}", (error,), digits=2, attempt=attempt)


def _compared(name: str, people: People, found: dict[str, np.ndarray], attempt: bool = False) -> Iterator[Claim]:
    """The errors, and whether DSNA's is less than the neighbours' average; the forest's own stands beside."""
    yield from _errors(name, people, found, attempt)
    tested = np.flatnonzero(~np.isnan(found[SHIPPED]))
    errors = {which: np.abs(predicted - people.values)[tested] for which, predicted in found.items()}
    for which in (AVERAGE, FOREST):
        claim = f"{name}: DSNA is nearer than the {which}"
        beside = attempt or which == FOREST
        yield better(claim, people.persons[tested], errors[which], errors[SHIPPED], attempt=beside)
