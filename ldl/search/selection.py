"""Nested selection: hyperparameters are chosen on inner folds of the training set, which never see a test row."""

from __future__ import annotations

import copy
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.jobs.store import Result
from ldl.jobs.workers import one_line
from ldl.progress import stop
from ldl.protocols import Fold, kfold, leak, with_validation
from ldl.search.statistics import best_rank

Setting = dict[str, Any]
"""Values of hyperparameters by their dotted names."""
FoldNumber = int | str
"""The number of a fold, or :data:`ALL`."""
ALL = "all"
"""All rows, for the setting of the final model."""


def inner_splits(
    data: LDLDataModule, inner_folds: int, val_fraction: float | None, rows: np.ndarray | None = None
) -> list[Fold]:
    """Split the training set, or other ``rows``; the test set of each split evaluates settings.

    Groups that the fold keeps apart are kept apart.

    Args:
        data: The data module with a fold selected.
        inner_folds: Number of inner folds; 1 holds out ``val_fraction``.
        val_fraction: Share of rows, or of groups that are kept apart.
        rows: Rows to split.

    Raises:
        LDLError: there are too few rows or groups.
    """
    rows = data.split.train if rows is None else rows
    groups = None if data.groups is None or leak(data.split, data.groups) else data.groups[rows]
    if inner_folds == 1:
        every = np.arange(len(rows))
        split = with_validation(every, every[:0], val_fraction, data.fold_seed, data.fold, groups)
        return [Fold(rows[split.train], data.split.val, rows[split.val])]
    splits = [kfold(len(rows), inner_folds, number, data.fold_seed, groups=groups) for number in range(inner_folds)]
    return [Fold(rows[split.train], data.split.val, rows[split.test]) for split in splits]


def validation_splits(data: LDLDataModule, inner_folds: int, fold: FoldNumber) -> list[Fold]:
    """Return splits whose validation set evaluates the trials of a search; no test row of the fold is in them.

    Args:
        data: The data module with the fold selected.
        inner_folds: 1 takes the validation set of the fold, more split its training and validation set.
        fold: The fold, or :data:`ALL` for all rows.

    Raises:
        LDLError: there are too few rows or groups, or there is no validation set.
    """
    test = data.split.test[:0] if fold == ALL else data.split.test
    if inner_folds == 1 and fold != ALL:
        splits = [data.split]
    else:
        rows = np.setdiff1d(np.concatenate([data.split.train, data.split.val, data.split.test]), test)
        splits = [Fold(one.train, one.test, test) for one in inner_splits(data, inner_folds, data.val_fraction, rows)]
    if not all(len(split.val) for split in splits):
        raise LDLError(
            "tune.inner_folds 1 evaluates trials on the validation set, and there is none; set data.val_fraction "
            "above 0, or tune.inner_folds above 1"
        )
    return splits


def on_split(data: LDLDataModule, split: Fold) -> LDLDataModule:
    """Return a copy of a data module with another split; everything it learns is learnt from its training rows."""
    data = copy.copy(data)
    data.split = split
    data.prepare_fold()
    return data


class Candidate(ABC):
    """A model that can be trained in one or several settings.

    Attributes:
        name: Name in tables.
        settings: Settings to choose from, the simplest first.
    """

    name: str
    settings: list[Setting]

    @abstractmethod
    def open(self, setting: Setting, fold: int) -> LDLDataModule:
        """Return the data module of a setting after ``setup``, with a fold selected."""

    @abstractmethod
    def score(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> dict[str, float]:
        """Train on ``data.split.train`` and return the metrics of ``data.split.test``.

        With ``choosing`` the model may be cheaper, such as have fewer trees.
        """


class Chosen(NamedTuple):
    """The chosen setting, and the errors of settings that failed, which are written as JSON."""

    setting: Setting
    failed: dict[str, str]


@dataclass(frozen=True)
class Selection:
    """How settings are chosen.

    Attributes:
        metrics: The setting with the lowest mean rank over these is taken.
        inner_folds: Number of inner folds; 1 holds out ``val_fraction`` of the training set.
        val_fraction: Share of rows, or of groups that are kept apart.
    """

    metrics: tuple[str, ...] = ("kl",)
    inner_folds: int = 1
    val_fraction: float = 0.1

    def __str__(self) -> str:
        where = f"in {self.inner_folds} inner folds" if self.inner_folds > 1 else f"on {self.val_fraction:.0%}"
        return f"{where} of the training set of every fold by {', '.join(self.metrics)}"

    def splits(self, data: LDLDataModule, rows: np.ndarray | None = None) -> list[Fold]:
        """Return :func:`inner_splits` of a data module."""
        return inner_splits(data, self.inner_folds, self.val_fraction, rows)

    def choose(self, candidate: Candidate, fold: FoldNumber) -> Chosen:
        """Choose the setting of a fold, or of all rows.

        A setting that fails is not taken. If all fail, the first error is raised.
        """
        if len(candidate.settings) == 1:
            return Chosen(candidate.settings[0], {})
        selected = 0 if isinstance(fold, str) else fold
        opened = [candidate.open(setting, selected) for setting in candidate.settings]
        measured: list[list[dict[str, float]]] = [[] for _ in opened]
        errors: dict[int, Exception] = {}
        # Split by split: settings with the same data share whatever those have learnt.
        for data in {id(data): data for data in opened}.values():
            for inner in self._inner_data(data, fold):
                for number, setting in enumerate(candidate.settings):
                    if opened[number] is data:
                        stop.leave()
                        try:
                            measured[number].append(candidate.score(setting, copy.copy(inner), choosing=True))
                        except Exception as error:  # any error of a model
                            errors.setdefault(number, error)
        if len(errors) == len(opened):
            raise errors[0]
        scores = []
        for number, metrics in enumerate(measured):
            worst = [dict.fromkeys(self.metrics, math.nan)]
            scores.append(self._means(worst if number in errors else metrics))
        failed = {json.dumps(candidate.settings[number]): one_line(error) for number, error in errors.items()}
        return Chosen(candidate.settings[best_rank(scores)], failed)

    def _means(self, measured: list[dict[str, float]]) -> dict[str, float]:
        return {name: float(np.mean([metrics[name] for metrics in measured])) for name in self.metrics}

    def _inner_data(self, data: LDLDataModule, fold: FoldNumber) -> Iterator[LDLDataModule]:
        rows = np.sort(np.concatenate([data.split.train, data.split.test])) if fold == ALL else None
        for split in self.splits(data, rows):
            yield on_split(data, split)


def choose_and_test(candidate: Candidate, fold: int, selection: Selection) -> Result:
    """Choose a setting in the training set of a fold, train it there and test it.

    Returns:
        ``setting``, ``seconds``, ``measures`` and, of settings that failed, ``failed_settings``; or the ``error``.
    """
    start = time.perf_counter()
    try:
        chosen = selection.choose(candidate, fold)
        stop.leave()
        metrics = candidate.score(chosen.setting, copy.copy(candidate.open(chosen.setting, fold)))
    except Exception as error:  # any error of a model is a result of the comparison
        return {"error": one_line(error)}
    row = {"setting": chosen.setting, "seconds": round(time.perf_counter() - start, 3), "measures": metrics}
    return row | ({"failed_settings": chosen.failed} if chosen.failed else {})
