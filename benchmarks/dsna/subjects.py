"""FG-NET's appearance features, leave one person out, with hyperparameters chosen inside each quarter of the subjects.

For each quarter of the subjects, hyperparameters are chosen by MAE, by cross-validation in three folds of whole
subjects of the other three quarters, the same folds for every method. Then every subject is predicted by a model of all
others, with the hyperparameters of the subject's quarter. A test subject never helps to choose."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
from torch import Tensor

from benchmarks.common.data import inputs_of
from benchmarks.common.items import Statement, Work
from ldl.faces import FGNETAAM
from ldl.jobs.store import Key, Result
from ldl.search.statistics import mean_and_std

QUARTERS, INNER = 4, 3
FEW = 12
"""Subjects of the small form."""

Setting = dict[str, Any]
Predictor = Callable[[np.ndarray, np.ndarray, Setting, list[Setting]], list[np.ndarray]]
"""Function of training rows, test rows, the hyperparameters of a fit and a list of options of a prediction. It fits
once and returns the predictions by each of the options."""


class Subjects(NamedTuple):
    """The data.

    Attributes:
        data: The data module.
        inputs: (N, F) features.
        features: (N, F) the same, float64, with mean squared norm 1.
        values: (N,) ages.
        groups: (N,) subject of each row.
        rows: Rows that take part.
    """

    data: FGNETAAM
    inputs: Tensor
    features: np.ndarray
    values: np.ndarray
    groups: np.ndarray
    rows: np.ndarray

    @property
    def quarter(self) -> np.ndarray:
        """Quarter of each subject."""
        count = int(self.groups[self.rows].max()) + 1
        return np.random.default_rng(0).permutation(count) % QUARTERS

    def inner_folds(self, tested: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return training and validation rows, by whole subjects, of all quarters but the tested one."""
        free = np.flatnonzero(self.quarter != tested)
        order = np.random.default_rng(tested).permutation(free)
        groups = self.groups[self.rows]
        rest = np.isin(groups, free)
        tests = [np.isin(groups, order[fold::INNER]) for fold in range(INNER)]
        return [(self.rows[rest & ~test], self.rows[test]) for test in tests]


def read_subjects(quick: bool, **arguments: Any) -> Subjects:
    """Read all subjects, or the few of the small form. ``arguments`` are those of the data module."""
    data = FGNETAAM(**arguments)
    data.setup()
    assert data.values is not None and data.groups is not None
    inputs = inputs_of(data)
    features = inputs.double().numpy()
    features = features / np.sqrt(np.square(features).sum(1).mean())
    rows = np.flatnonzero(data.groups < FEW) if quick else np.arange(data.size)
    return Subjects(data, inputs, features, data.values, data.groups, rows)


def better(name: str, groups: np.ndarray, one: np.ndarray, other: np.ndarray) -> Statement:
    """Judge whether the ``other`` errors are less by more than twice the standard error of the mean over subjects."""
    gains = [(one - other)[groups == group].mean() for group in np.unique(groups)]
    mean, deviation = mean_and_std(gains)
    error = deviation / len(gains) ** 0.5
    return Statement(name, bool(mean > 2 * error), f"gains {mean:.3f}, standard error {error:.3f}, over subjects")


def grid(**choices: list[Any]) -> list[Setting]:
    """Return all combinations."""
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


@dataclass(frozen=True)
class Method:
    """A way to predict ages, and its hyperparameters to choose from.

    Attributes:
        name: Name in stored results.
        predict: Predictor.
        settings: Hyperparameters of the fit. The error of the first option of the first stage chooses.
        stages: By name, options of predictions by one fit, to choose from.
    """

    name: str
    predict: Predictor
    settings: list[Setting]
    stages: dict[str, list[Setting]] = field(default_factory=lambda: {"": [{}]})


def predict_all(work: Work, subjects: Subjects, method: Method) -> dict[str, np.ndarray]:
    """Return for each stage the predictions (rows,) of every subject by a model of all others."""
    found = {name: np.full(len(subjects.rows), np.nan) for name in method.stages}
    groups = subjects.groups[subjects.rows]
    for quarter in range(QUARTERS):
        setting, options = _choose(work, subjects, method, quarter)
        mine = np.flatnonzero(subjects.quarter == quarter)

        def measure(setting: Setting = setting, options: list[Setting] = options, mine: Any = mine) -> Result:
            parts = [
                method.predict(subjects.rows[groups != group], subjects.rows[groups == group], setting, options)
                for group in mine
            ]
            return {"predicted": [np.concatenate(stage).tolist() for stage in zip(*parts)]}

        key: Key = {"method": method.name, "tested": quarter, "setting": setting, "options": options}
        rows = np.concatenate([np.flatnonzero(groups == group) for group in mine])
        for name, predicted in zip(found, work.result(key, measure)["predicted"]):
            found[name][rows] = predicted
    return found


def _choose(work: Work, subjects: Subjects, method: Method, quarter: int) -> tuple[Setting, list[Setting]]:
    """Return the hyperparameters of a quarter, and the option of each stage. A single candidate is not measured."""
    first, setting = next(iter(method.stages.values()))[:1], method.settings[0]
    if len(method.settings) > 1:
        errors = [_inner_errors(work, subjects, method, quarter, one, first)[0] for one in method.settings]
        setting = method.settings[int(np.argmin(errors))]
    chosen = []
    for options in method.stages.values():
        several = len(options) > 1
        errors = _inner_errors(work, subjects, method, quarter, setting, options) if several else [0.0]
        chosen.append(options[int(np.argmin(errors))])
    return setting, chosen


def _inner_errors(
    work: Work, subjects: Subjects, method: Method, quarter: int, setting: Setting, options: list[Setting]
) -> list[float]:
    """Return the MAE by each option over the validation rows of all inner folds of a quarter."""

    def measure() -> Result:
        folds, total = subjects.inner_folds(quarter), np.zeros(len(options))
        for train, test in folds:
            predicted = method.predict(train, test, setting, options)
            total += [np.abs(part - subjects.values[test]).sum() for part in predicted]
        return {"errors": (total / sum(len(test) for _, test in folds)).tolist()}

    key: Key = {"method": method.name, "quarter": quarter, "setting": setting, "options": options}
    errors: list[float] = work.result(key, measure)["errors"]
    return errors
