"""Measures of predictions on a line that need all test rows at once, by the names they have in ``results.json``."""

from __future__ import annotations

import re

import numpy as np

from ldl.labels import LabelSpace
from ldl.metrics.groups import balanced_mae, band_groups, geometric_mean, mean, shot_groups
from ldl.metrics.predictive import COVERAGES, calibration_error, coverage, crps, nll, pit

THETAS = tuple(theta for theta in range(11) if theta != 5)
"""Tolerances of the cumulative scores ``cs0`` to ``cs10``; ``cs5`` is one of the value metrics already."""

_DETAIL = re.compile(r"cs([0-46-9]|10)|coverage(50|80|95)|(mae|bias|n)_-?\d+_-?\d+|(gm|n)_(many|medium|few)")


def ordinal_metrics(
    prediction: np.ndarray,
    predicted_value: np.ndarray,
    value: np.ndarray,
    labels: LabelSpace,
    train_count: np.ndarray | None = None,
) -> dict[str, float]:
    """Measures of the predicted distributions, of the decoded values, and of groups of instances.

    Args:
        prediction: (n, C) predicted distributions, on the simplex.
        predicted_value: (n,) decoded values.
        value: (n,) true values, in the labels' unit.
        labels: Ordinal labels.
        train_count: (n,) training instances of each instance's label; None leaves the groups by it out.

    Returns:
        ``nll``, ``crps``, ``coverage50`` to ``coverage95`` and ``calibration_error``
        (:mod:`ldl.metrics.predictive`); ``gm`` with errors raised to a hundredth of the least distance of two labels,
        ``balanced_mae``, ``cs0`` to ``cs10`` without ``cs5``. Then for every group G its size ``n_G`` and ``mae_G``:
        ``many``, ``medium`` and ``few``, with ``gm_G``; bands of ten units such as ``20_29``, with the bias (predicted
        less true) ``bias_G``. An empty group has NaN, and ``n_G`` 0.
    """
    axis = np.array(labels.axes[0])
    value, predicted_value = np.asarray(value, np.float64), np.asarray(predicted_value, np.float64)
    error = predicted_value - value
    absolute = np.abs(error)
    floor = 0.01 * float(np.diff(axis).min()) if len(axis) > 1 else 0.01
    spans = pit(prediction, value, axis)
    measured = {"nll": mean(nll(prediction, value, axis)), "crps": mean(crps(prediction, value, axis))}
    measured |= {f"coverage{percent}": coverage(spans, percent) for percent in COVERAGES}
    measured["calibration_error"] = calibration_error(spans)
    measured["gm"] = geometric_mean(error, floor)
    measured["balanced_mae"] = balanced_mae(error, value, labels)
    measured |= {f"cs{theta}": mean(absolute <= theta) for theta in THETAS}
    for name, members in shot_groups(train_count) if train_count is not None else ():
        measured[f"n_{name}"] = float(members.sum())
        measured[f"mae_{name}"] = mean(absolute[members])
        measured[f"gm_{name}"] = geometric_mean(error[members], floor)
    for name, members in band_groups(value, labels):
        measured[f"n_{name}"] = float(members.sum())
        measured[f"mae_{name}"] = mean(absolute[members])
        measured[f"bias_{name}"] = mean(error[members])
    return measured


def is_detail(name: str) -> bool:
    """Whether a metric is left to ``results.json``, and out of printed tables."""
    return _DETAIL.fullmatch(name) is not None


def group_size(name: str) -> str | None:
    """Name of the size of the group that a metric is about, such as ``n_few`` for ``mae_few``; None for all others."""
    match = re.fullmatch(r"(?:mae|gm|bias)_(many|medium|few|-?\d+_-?\d+)", name)
    return f"n_{match[1]}" if match else None
