"""Chooses among the settings of a candidate inside the training part of a fold, and measures the choice on its test."""

from __future__ import annotations

import copy
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ldl.cells.store import Row
from ldl.comparison.ranks import best_rank
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.progress import stop
from ldl.protocols import Fold, kfold, leak, with_validation

Setting = dict[str, Any]


class Candidate(ABC):
    """What is compared: something that can be fitted on the training rows of data, in one or several settings.

    Attributes:
        name: In tables.
        settings: What to choose from; the first is the simplest. One alone is not chosen, but taken.
    """

    name: str
    settings: list[Setting]

    @abstractmethod
    def open(self, setting: Setting, fold: int) -> LDLDataModule:
        """The data as the setting wants them, set up, at a fold."""

    @abstractmethod
    def score(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> dict[str, float]:
        """Fit on ``data.split.train``, measure on ``data.split.test``; ``choosing`` may take fewer trees and such."""


class Chosen(NamedTuple):
    """The setting to take, and why others, as JSON, could not be measured."""

    setting: Setting
    failed: dict[str, str]


@dataclass(frozen=True)
class Choice:
    """How settings are chosen.

    Attributes:
        measures: The setting with the lowest mean rank over these.
        inner_folds: 1 sets ``val_fraction`` of the training part aside; more cross-validate inside the training part.
        val_fraction: That share of rows or, where groups are kept apart, of groups.
    """

    measures: tuple[str, ...] = ("kl",)
    inner_folds: int = 1
    val_fraction: float = 0.1

    def __str__(self) -> str:
        where = f"in {self.inner_folds} inner folds" if self.inner_folds > 1 else f"on {self.val_fraction:.0%}"
        return f"{where} of the training part of every fold by {', '.join(self.measures)}"

    def fits(self, candidate: Candidate) -> int:
        """How many it takes."""
        return self.inner_folds * len(candidate.settings) if len(candidate.settings) > 1 else 0

    def cuts(self, data: LDLDataModule, rows: np.ndarray | None = None) -> list[Fold]:
        """The training part, or other ``rows``, cut into what is fitted and, as the test part, what measures settings.

        Groups that the fold keeps apart are kept apart here too. Raises LDLError where there are too few of them.
        """
        rows = data.split.train if rows is None else rows
        groups = None if data.groups is None or leak(data.split, data.groups) else data.groups[rows]
        if self.inner_folds == 1:
            every = np.arange(len(rows))
            cut = with_validation(every, every[:0], self.val_fraction, data.fold_seed, data.fold, groups)
            return [Fold(rows[cut.train], data.split.val, rows[cut.val])]
        inner = [
            kfold(len(rows), self.inner_folds, number, data.fold_seed, groups=groups)
            for number in range(self.inner_folds)
        ]
        return [Fold(rows[cut.train], data.split.val, rows[cut.test]) for cut in inner]

    def best(self, candidate: Candidate, fold: int | None, fitted: Callable[[], None] = lambda: None) -> Chosen:
        """The setting to take in a fold; None for that of all rows together. ``fitted`` is called after every fit.

        A setting that fails, such as one with more neighbours than rows, is not taken; where all fail, the first error
        is raised.
        """
        if len(candidate.settings) == 1:
            return Chosen(candidate.settings[0], {})
        opened = [candidate.open(setting, fold or 0) for setting in candidate.settings]
        measured: list[list[dict[str, float]]] = [[] for _ in opened]
        errors: dict[int, Exception] = {}
        # Part by part: settings with the same data share what these have learned of it.
        for data in {id(data): data for data in opened}.values():
            for part in self._parts(data, whole=fold is None):
                for number, setting in enumerate(candidate.settings):
                    if opened[number] is data:
                        stop.leave()
                        try:
                            measured[number].append(candidate.score(setting, copy.copy(part), choosing=True))
                        except Exception as error:  # candidates fail in ways of their own
                            errors.setdefault(number, error)
                        fitted()
        if len(errors) == len(opened):
            raise errors[0]
        scores = [
            {
                name: math.nan if number in errors else float(np.mean([row[name] for row in rows]))
                for name in self.measures
            }
            for number, rows in enumerate(measured)
        ]
        reasons = {json.dumps(candidate.settings[number]): told(error) for number, error in errors.items()}
        return Chosen(candidate.settings[best_rank(scores)], reasons)

    def _parts(self, data: LDLDataModule, whole: bool) -> Iterator[LDLDataModule]:
        rows = np.sort(np.concatenate([data.split.train, data.split.test])) if whole else None
        for cut in self.cuts(data, rows):
            part = copy.copy(data)
            part.split = cut
            part.prepare_fold()
            yield part


def measure(candidate: Candidate, fold: int, choice: Choice, fitted: Callable[[], None] = lambda: None) -> Row:
    """Choose a setting, fit, test: ``setting``, ``seconds``, ``measures``; or the ``error`` in one line.

    Where settings could not be measured, ``failed_settings`` says why.
    """
    start = time.perf_counter()
    try:
        chosen = choice.best(candidate, fold, fitted)
        stop.leave()
        measures = candidate.score(chosen.setting, copy.copy(candidate.open(chosen.setting, fold)))
        fitted()
    except Exception as error:  # candidates fail in ways of their own, which belong into the table
        return {"error": told(error)}
    row = {"setting": chosen.setting, "seconds": round(time.perf_counter() - start, 3), "measures": measures}
    return row | ({"failed_settings": chosen.failed} if chosen.failed else {})


def told(error: Exception) -> str:
    """One line of it."""
    kind = "" if isinstance(error, LDLError) else f"{type(error).__name__}: "
    return f"{kind}{' '.join(str(error).split())[:200]}"
