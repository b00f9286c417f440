"""Opens the folds of the tabular benchmark, and chooses among the settings of a method without the test rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.common.figures import direction
from benchmarks.tables.methods import Method, predict
from ldl.data import TabularLDL
from ldl.data.tables.grouped import GroupProtocol
from ldl.data.tables.scaling import Scaling
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.protocols import kfold


@dataclass(frozen=True)
class Choice:
    """How settings are chosen.

    Attributes:
        measures: The setting with the lowest mean rank over these.
        inner_folds: 1 sets a tenth of the training part aside; more cross-validate inside the training part, with
            features scaled as the whole of it is.
    """

    measures: tuple[str, ...] = ("kl",)
    inner_folds: int = 1

    def __str__(self) -> str:
        where = f"in {self.inner_folds} inner folds" if self.inner_folds > 1 else "on a tenth"
        return f"{where} of the training part of every fold by {', '.join(self.measures)}"

    def best(self, path: str, protocol: GroupProtocol, method: Method, seed: int, fold: int) -> dict[str, Any]:
        """The best point of the method's grid."""
        settings = method.settings()
        if len(settings) == 1:
            return settings[0]
        scores = []
        for setting in settings:
            scaling, arguments = split_scaling(method, setting)
            parts = [
                score(method, {**arguments, **method.tuning}, data, data.split.val, seed)
                for data in self._inner(path, protocol, scaling, fold)
            ]
            scores.append({name: float(np.mean([part[name] for part in parts])) for name in self.measures})
        return settings[best_rank(scores)]

    def _inner(self, path: str, protocol: GroupProtocol, scaling: Scaling, fold: int) -> list[TabularLDL]:
        if self.inner_folds == 1:
            return [open_fold(path, protocol, scaling, fold, 0.1)]
        whole, parts = open_fold(path, protocol, scaling, fold, 0.0), []
        rows = whole.split.train
        groups = None if whole.leaky is not False or whole.groups is None else whole.groups[rows]
        for number in range(self.inner_folds):
            inner = kfold(len(rows), self.inner_folds, number, groups=groups)
            part = copy.copy(whole)
            part.split = replace(whole.split, train=rows[inner.train], val=rows[inner.test])
            parts.append(part)
        return parts


def best_rank(scores: list[dict[str, float]]) -> int:
    """The first of those with the lowest mean rank over their measures."""
    ranks = [rankdata([direction(name) * row[name] for row in scores]) for name in scores[0]]
    return int(np.mean(ranks, axis=0).argmin())


def split_scaling(method: Method, setting: dict[str, Any]) -> tuple[Scaling, dict[str, Any]]:
    """The scaling of the features, and the other arguments."""
    arguments = {name: value for name, value in setting.items() if name != "scaling"}
    return setting.get("scaling", method.scaling), arguments


@lru_cache(maxsize=4)
def open_fold(path: str, protocol: GroupProtocol, scaling: Scaling, fold: int, val_fraction: float) -> TabularLDL:
    """The set, cut and scaled; kept, since a grid has more settings than scalings."""
    data = TabularLDL(path=path, protocol=protocol, scaling=scaling, fold=fold, val_fraction=val_fraction)
    data.setup()
    return data


def score(method: Method, arguments: dict[str, Any], data: TabularLDL, rows: np.ndarray, seed: int) -> dict[str, float]:
    """The ten measures, means over ``rows``."""
    predicted, true = predict(method, arguments, data, rows, seed).double(), data.columns["target"][rows].double()
    return {name: float(measure.function(predicted, true).mean()) for name, measure in DISTRIBUTION_METRICS.items()}
