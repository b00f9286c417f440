"""StructRF and the methods that its paper stands beside it, on one fold of one set."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import Tensor

from benchmarks.common.folds import FOLDS, fit_head, mean_measures, read_set
from benchmarks.common.items import Work
from benchmarks.structrf.starts import several_starts
from benchmarks.tables.iterative_scaling import IterativeScaling
from ldl.cells.store import Row
from ldl.heads import MaxEnt, MeanPredictor, StructRF
from ldl.protocols import kfold

Predict = Callable[[Tensor], Tensor]

VALIDATION = 1 / 9
"""Of the training part: 8:1:1, as the paper has it."""
PEER_FOLDS = 1


def fit_forest(inputs: Tensor, target: Tensor, several: bool = False, **options: Any) -> Predict:
    """StructRF with the paper's setting: 50 trees, depth 20, sampling .8; 2-means from ``several`` starts or one."""
    with several_starts() if several else nullcontext():
        return fit_head(StructRF(**{"seed": 0, "out_of_bag": False, **options}), inputs, target)


def fit_classes(inputs: Tensor, target: Tensor, trees: int = 50) -> Predict:
    """RF: a forest of the label that describes a row most; shares of the classes in its leaves are the prediction."""
    forest = RandomForestClassifier(trees, random_state=0).fit(inputs.numpy(), target.argmax(1).numpy())

    def predict(rows: Tensor) -> Tensor:
        shares = np.zeros((len(rows), target.shape[1]))
        shares[:, forest.classes_] = forest.predict_proba(rows.numpy())
        return torch.from_numpy(shares)

    return predict


def fit_scaling(inputs: Tensor, target: Tensor, iterations: int = 200) -> Predict:
    """SA-IIS, at most 200 iterations."""
    model = IterativeScaling(iterations)
    model.fit(inputs.numpy(), target.double().numpy())
    return lambda rows: torch.from_numpy(model.predict(rows.numpy()))


def fit_entropy(inputs: Tensor, target: Tensor, iterations: int = 300, scale: bool = False) -> Predict:
    """SA-BFGS, at most 300 iterations; where they are to ``scale``, on standardised features."""
    mean, deviation = (inputs.mean(0), inputs.std(0).clamp_min(1e-6)) if scale else (0.0, 1.0)
    head = fit_head(MaxEnt(l2=0.0, iterations=iterations), (inputs - mean) / deviation, target)
    return lambda rows: head((rows - mean) / deviation)


def fit_constant(inputs: Tensor, target: Tensor) -> Predict:
    """The mean distribution of the training rows."""
    return fit_head(MeanPredictor(), inputs, target)


METHODS: dict[str, Callable[..., Predict]] = {
    "StructRF": fit_forest,
    "SA-BFGS": fit_entropy,
    "SA-IIS": fit_scaling,
    "RF": fit_classes,
    "constant": fit_constant,
}
SMALL: dict[str, dict[str, Any]] = {
    "StructRF": {"trees": 2}, "SA-BFGS": {"iterations": 2}, "SA-IIS": {"iterations": 1}, "RF": {"trees": 2},
}  # fmt: skip
"""What makes a method quick."""


@cache
def rows_of(name: str) -> tuple[Tensor, Tensor]:
    """Features and distributions of a set, read once."""
    return read_set(name)


def fold_scores(work: Work, name: str, method: str, fold: int, validation: bool = False, **options: Any) -> Row:
    """All measures on the test rows of a fold; with ``validation`` on a tenth of the rows that is set aside."""
    if work.quick:
        options = {**options, **SMALL.get(method, {})}

    def measure() -> Row:
        features, target = rows_of(name)
        split = kfold(len(target), FOLDS, fold, 0, VALIDATION if validation else 0.0)
        tested = split.val if validation else split.test
        predict = METHODS[method](features[split.train], target[split.train], **options)
        return mean_measures(predict(features[tested]), target[tested])

    key = {"set": name, "method": method, "fold": fold, "validation": validation, **options}
    return work.shared("forests").cell(key, measure)


def forest_scores(work: Work, name: str, folds: int = FOLDS, **options: Any) -> list[Row]:
    """StructRF on the test rows of the first folds."""
    return [fold_scores(work, name, "StructRF", fold, **options) for fold in range(folds_of(work, folds))]


def folds_of(work: Work, most: int = FOLDS) -> int:
    """How many folds are measured."""
    return 1 if work.quick else most
