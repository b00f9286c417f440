"""Intervals and sets calibrated on all rows, each predicted by a model that did not see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ldl.data.loaded import Loaded
from ldl.inference import Predictor
from ldl.methods.conformal import Conformal
from ldl.protocols import kfold


def cross_calibrate(
    train: Callable[[np.ndarray, Loaded], Predictor], rows: np.ndarray, loaded: Loaded, folds: int, seed: int
) -> Conformal:
    """Calibrate on out-of-fold predictions, for the model that is then trained on all rows.

    Args:
        train: Trains a model on some rows.
        rows: (N, F) features.
        loaded: Labels, targets, and maybe values and groups; groups are kept together, and count as one row each.
        folds: Number of folds.
        seed: Of the folds.

    Raises:
        LDLError: fewer rows, or groups, than folds.
    """
    predicted = np.empty((len(rows), len(loaded.labels)), np.float32)
    for number in range(folds):
        fold = kfold(len(rows), folds, number, seed, groups=loaded.groups)
        model = train(rows[fold.train], part_of(loaded, fold.train))
        predicted[fold.test] = model.predict(rows[fold.test]).distribution
    return Conformal.fit(loaded.labels, predicted, truth_of(loaded), loaded.groups)


def part_of(loaded: Loaded, index: np.ndarray) -> Loaded:
    """Some of the rows."""
    columns = {name: column[index] for name, column in loaded.columns.items()}
    values, groups = (None if part is None else part[index] for part in (loaded.values, loaded.groups))
    return replace(loaded, columns=columns, values=values, groups=groups)


def truth_of(loaded: Loaded) -> np.ndarray:
    """What calibrates: values, those of distributions where there are no others, or nominal distributions."""
    target = loaded.columns["target"]
    if not loaded.labels.has_values:
        return target.numpy()
    return loaded.labels.decode(target).numpy() if loaded.values is None else loaded.values
