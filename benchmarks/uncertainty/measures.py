"""The ways to calibrate that are compared, and what is measured of each."""

from __future__ import annotations

import numpy as np

from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, CrossConformal, predicted_set
from ldl.methods.conformal.line import line_intervals

LEVELS = (50, 80, 90)
"""In percent."""

Figures = dict[str, float]


def plain(labels: LabelSpace, prediction: np.ndarray, level: float) -> np.ndarray:
    """Intervals (N, 2), or sets (N, C), with so much of the predicted mass."""
    if labels.has_values:
        return line_intervals(prediction, np.array(labels.axes[0]), level)
    return predicted_set(labels, prediction, level)


def given(model: Conformal | CrossConformal, prediction: np.ndarray, level: float) -> np.ndarray:
    """Calibrated intervals (N, 2), or sets (N, C)."""
    return model.interval(prediction, level) if model.labels.has_values else model.label_set(prediction, level)


def one_row_a_group(groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers of rows, one of each group."""
    return np.array([rng.choice(np.flatnonzero(groups == name)) for name in np.unique(groups)])


def measure(found: np.ndarray, truth: np.ndarray, groups: np.ndarray | None) -> Figures:
    """``coverage``, the share of true values or of true mass that is held, and the mean ``width``, in labels of a set.

    With groups also ``by_group``, the coverage of which every group has the same weight.
    """
    if found.dtype == bool:
        held, width = (truth * found).sum(1), found.sum(1)
    else:
        held = ((found[:, 0] <= truth) & (truth <= found[:, 1])).astype(float)
        width = found[:, 1] - found[:, 0]
    figures = {"coverage": float(held.mean()), "width": float(width.mean())}
    if groups is not None:
        figures["by_group"] = float(np.mean([held[groups == name].mean() for name in np.unique(groups)]))
    return figures
