"""FG-NET's appearance features, leave one person out, with settings that are chosen inside each quarter of the persons.

For each quarter of the persons settings are chosen by MAE, by person-exclusive cross-validation in three folds of the
other three quarters, the same folds for every method; a tested person never helps to choose. Then every person is
predicted by a model of all others, with the settings of the person's quarter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
from torch import Tensor

from benchmarks.common.claims import Statement
from benchmarks.common.folds import inputs_of
from benchmarks.common.items import Work
from ldl.cells.store import Row
from ldl.comparison.figures import mean_and_deviation
from ldl.data import FGNETAAM

QUARTERS, INNER = 4, 3
FEW = 12
"""Persons of the small form."""

Setting = dict[str, Any]
Predictor = Callable[[np.ndarray, np.ndarray, Setting, list[Setting]], list[np.ndarray]]
"""From training rows, tested rows, the setting of a fit and settings of what is done with it: predictions of each."""


class People(NamedTuple):
    """The data.

    Attributes:
        data: Where they come from.
        inputs: (N, F) features.
        features: (N, F) the same, float64, of mean squared norm 1.
        values: (N,) ages.
        persons: (N,) whose picture a row is.
        rows: The rows that take part.
    """

    data: FGNETAAM
    inputs: Tensor
    features: np.ndarray
    values: np.ndarray
    persons: np.ndarray
    rows: np.ndarray

    @property
    def quarter(self) -> np.ndarray:
        """Each person's quarter."""
        count = int(self.persons[self.rows].max()) + 1
        return np.random.default_rng(0).permutation(count) % QUARTERS

    def inner_folds(self, tested: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training and validation rows, by whole persons, of all quarters but the one that is tested."""
        free = np.flatnonzero(self.quarter != tested)
        order = np.random.default_rng(tested).permutation(free)
        persons = self.persons[self.rows]
        rest = np.isin(persons, free)
        tests = [np.isin(persons, order[fold::INNER]) for fold in range(INNER)]
        return [(self.rows[rest & ~test], self.rows[test]) for test in tests]


def read_people(quick: bool, **arguments: Any) -> People:
    """All persons, or the few of the small form; ``arguments`` are those of the data module."""
    data = FGNETAAM(**arguments)
    data.setup()
    assert data.values is not None and data.groups is not None
    inputs = inputs_of(data)
    features = inputs.double().numpy()
    features = features / np.sqrt(np.square(features).sum(1).mean())
    rows = np.flatnonzero(data.groups < FEW) if quick else np.arange(data.size)
    return People(data, inputs, features, data.values, data.groups, rows)


def better(name: str, persons: np.ndarray, one: np.ndarray, other: np.ndarray, attempt: bool = False) -> Statement:
    """Whether the ``other`` errors of rows are less by more than twice the standard error of the mean over persons."""
    gains = [(one - other)[persons == person].mean() for person in np.unique(persons)]
    mean, deviation = mean_and_deviation(gains)
    error = deviation / len(gains) ** 0.5
    told = f"gains {mean:.3f}, standard error {error:.3f}, over persons"
    return Statement(name, bool(mean > 2 * error), told, attempt=attempt)


def grid(**choices: list[Any]) -> list[Setting]:
    """All combinations."""
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


@dataclass(frozen=True)
class Method:
    """How ages are predicted, and what is chosen from.

    Attributes:
        name: In cells.
        predict: From one fit.
        settings: Of the fit; the error of the first stage's first choice chooses.
        stages: By names, what is done with one fit: the settings to choose from, and lists of changes to what was
            chosen before, of which one is made where it is better.
    """

    name: str
    predict: Predictor
    settings: list[Setting]
    stages: dict[str, list[list[Setting]]] = field(default_factory=lambda: {"": [[{}]]})


def inner_errors(work: Work, people: People, method: Method, quarter: int, setting: Setting, options: Any) -> list[Any]:
    """MAE of each of the options over the validation rows of all inner folds of a quarter."""

    def measure() -> Row:
        folds, total = people.inner_folds(quarter), np.zeros(len(options))
        for train, test in folds:
            predicted = method.predict(train, test, setting, options)
            total += [np.abs(part - people.values[test]).sum() for part in predicted]
        seen = sorted({int(person) for _, test in folds for person in people.persons[test]})
        return {"errors": (total / sum(len(test) for _, test in folds)).tolist(), "persons": seen}

    key: Row = {"method": method.name, "quarter": quarter, "setting": setting, "options": options}
    errors: list[Any] = work.cell(key, measure)["errors"]
    return errors


class Choice(NamedTuple):
    """What was chosen for a quarter: the setting of the fit, and by stage the option."""

    setting: Setting
    options: dict[str, Setting]


def choose(work: Work, people: People, method: Method, quarter: int) -> Choice:
    """The settings of a quarter; what leaves no choice is not measured."""

    def best(setting: Setting, axes: list[list[Setting]]) -> Setting:
        if len(axes) == 1 and len(axes[0]) == 1:
            return axes[0][0]
        found, least = Setting(), np.inf
        for axis in axes:
            options = [{**found, **option} for option in axis]
            errors = inner_errors(work, people, method, quarter, setting, options)
            if min(errors) < least:
                found, least = options[int(np.argmin(errors))], min(errors)
        return found

    first, setting = next(iter(method.stages.values()))[0][:1], method.settings[0]
    if len(method.settings) > 1:
        setting = min(method.settings, key=lambda one: inner_errors(work, people, method, quarter, one, first)[0])
    return Choice(setting, {name: best(setting, axes) for name, axes in method.stages.items()})


def inner_of_chosen(work: Work, people: People, method: Method) -> dict[str, tuple[float, ...]]:
    """Of each stage the MAE over the inner folds of each quarter, of what was chosen there."""
    found: dict[str, tuple[float, ...]] = dict.fromkeys(method.stages, ())
    for quarter in range(QUARTERS):
        choice = choose(work, people, method, quarter)
        options = list(choice.options.values())
        for name, error in zip(found, inner_errors(work, people, method, quarter, choice.setting, options)):
            found[name] += (error,)
    return found


def predict_all(work: Work, people: People, method: Method, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Of each stage, or those named, the predictions (rows,) of every person by a model of all others."""
    names = names or list(method.stages)
    found = {name: np.full(len(people.rows), np.nan) for name in names}
    persons = people.persons[people.rows]
    for quarter in range(QUARTERS):
        choice = choose(work, people, method, quarter)
        options = [choice.options[name] for name in names]
        mine = np.flatnonzero(people.quarter == quarter)

        def measure(setting: Setting = choice.setting, options: list[Setting] = options, mine: Any = mine) -> Row:
            parts = [
                method.predict(people.rows[persons != person], people.rows[persons == person], setting, options)
                for person in mine
            ]
            return {"predicted": [np.concatenate(stage).tolist() for stage in zip(*parts)]}

        key: Row = {"method": method.name, "tested": quarter, "setting": choice.setting, "options": options}
        rows = np.concatenate([np.flatnonzero(persons == person) for person in mine])
        for name, predicted in zip(names, work.cell(key, measure)["predicted"]):
            found[name][rows] = predicted
    return found
