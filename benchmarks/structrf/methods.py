"""StructRF and the methods that its paper compares it with, on one fold of one set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import Tensor

from benchmarks.common.data import FOLDS, fit_head, mean_metrics, read_set
from benchmarks.common.items import Work, read_published
from benchmarks.structrf.iterative_scaling import IterativeScaling
from ldl.heads import MaxEnt, MeanPredictor, StructRF
from ldl.jobs.store import Result
from ldl.protocols import kfold

Predict = Callable[[Tensor], Tensor]

PUBLISHED = read_published("structrf")
METRICS: list[str] = PUBLISHED["measures"]
PRINTED = {
    (name, method): dict(zip(METRICS, zip(map(float, numbers[::2]), map(float, numbers[1::2]))))
    for name, method, *numbers in map(str.split, PUBLISHED["tables"].splitlines())
}
"""(set, method) -> metric -> mean and standard deviation."""
SETS = tuple(dict.fromkeys(name for name, _ in PRINTED))
BASELINES = ("SA-BFGS", "SA-IIS", "RF")

rows_of = cache(read_set)


def fit_forest(inputs: Tensor, target: Tensor, **options: Any) -> Predict:
    """Fit StructRF, by default with the paper's hyperparameters: 50 trees, depth 20, sampling .8."""
    return fit_head(StructRF(**{"seed": 0, "out_of_bag": False, **options}), inputs, target)


def fit_classes(inputs: Tensor, target: Tensor, trees: int = 50) -> Predict:
    """Fit RF, a forest of the label with the largest probability. It predicts the shares of the classes in leaves."""
    forest = RandomForestClassifier(trees, random_state=0).fit(inputs.numpy(), target.argmax(1).numpy())

    def predict(rows: Tensor) -> Tensor:
        shares = np.zeros((len(rows), target.shape[1]))
        shares[:, forest.classes_] = forest.predict_proba(rows.numpy())
        return torch.from_numpy(shares)

    return predict


def fit_scaling(inputs: Tensor, target: Tensor, iterations: int = 200) -> Predict:
    """Fit SA-IIS."""
    model = IterativeScaling(iterations)
    model.fit(inputs.numpy(), target.double().numpy())
    return lambda rows: torch.from_numpy(model.predict(rows.numpy()))


def fit_entropy(inputs: Tensor, target: Tensor, iterations: int = 300) -> Predict:
    """Fit SA-BFGS."""
    return fit_head(MaxEnt(l2=0.0, iterations=iterations), inputs, target)


def fit_mean(inputs: Tensor, target: Tensor) -> Predict:
    """Return a predictor of the mean distribution of the training rows."""
    return fit_head(MeanPredictor(), inputs, target)


METHODS: dict[str, Callable[..., Predict]] = {
    "StructRF": fit_forest,
    "SA-BFGS": fit_entropy,
    "SA-IIS": fit_scaling,
    "RF": fit_classes,
    "mean baseline": fit_mean,
}
SMALL: dict[str, dict[str, Any]] = {
    "StructRF": {"trees": 2}, "SA-BFGS": {"iterations": 2}, "SA-IIS": {"iterations": 1}, "RF": {"trees": 2},
}  # fmt: skip
"""Options that make a method quick."""


def fold_metrics(work: Work, name: str, method: str, fold: int, **options: Any) -> Result:
    """Return all metrics of the test rows of a fold."""
    if work.quick:
        options = {**options, **SMALL.get(method, {})}

    def measure() -> Result:
        features, target = rows_of(name)
        split = kfold(len(target), FOLDS, fold, 0)
        predict = METHODS[method](features[split.train], target[split.train], **options)
        return mean_metrics(predict(features[split.test]), target[split.test])

    return work.shared("forests").result({"set": name, "method": method, "fold": fold, **options}, measure)


def forest_metrics(work: Work, name: str, folds: int = FOLDS, **options: Any) -> list[Result]:
    """Return all metrics of StructRF on the test rows of the first folds; of one fold in a small form."""
    return [fold_metrics(work, name, "StructRF", fold, **options) for fold in range(1 if work.quick else folds)]
