"""Errors by groups of instances: how often their label was trained on, and which ten years they fall in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ldl.labels import LabelSpace
from ldl.metrics.predictive import nearest

MANY, FEW = 100, 20
"""Labels with more than 100 training instances are many-shot, with less than 20 few-shot, others medium-shot."""

SHOTS = ("many", "medium", "few")

BAND = 10
"""Width of the bands of values, in the labels' unit: decades, where that is years."""


class Band(NamedTuple):
    """The values from ``low`` up to, but not including, ``high``; ``name`` is such as ``20_29``."""

    name: str
    low: float
    high: float


def bands(labels: LabelSpace) -> list[Band]:
    """Bands of ten units that cover an ordinal label space; none where it spans less than 20 units, or more than 200.

    Outside of that range ten units are no sensible group: a scale from 0 to 1, or an income.
    """
    axis = labels.axes[0]
    if labels.kind != "ordinal" or not 2 * BAND <= axis[-1] - axis[0] <= 20 * BAND:
        return []
    first, last = int(axis[0] // BAND), int(axis[-1] // BAND)
    return [Band(f"{low:g}_{low + BAND - 1:g}", low, low + BAND) for low in range(first * BAND, last * BAND + 1, BAND)]


def train_counts(labels: LabelSpace, train_values: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How many training values are nearest to the same label as each of ``values``, (n,) of int."""
    axis = np.array(labels.axes[0])
    counts = np.bincount(nearest(axis, np.asarray(train_values)), minlength=len(axis))
    return counts[nearest(axis, np.asarray(values))]


def geometric_mean(error: np.ndarray, floor: float) -> float:
    """Geometric mean of absolute errors raised to ``floor``; NaN of none.

    Yang et al., "Delving into deep imbalanced regression", ICML 2021. One error of 0 would make it 0, hence the
    floor. Decoders that return labels (argmax, median) hit exactly again and again, and each such hit counts as the
    floor: compare this figure between runs of one decoder only.
    """
    return float(np.exp(np.log(np.maximum(np.abs(error), floor)).mean())) if len(error) else float("nan")


def balanced_mae(error: np.ndarray, value: np.ndarray, labels: LabelSpace) -> float:
    """Mean over labels of the MAE of the instances nearest to each; labels without instances do not count.

    Ren et al., "Balanced MSE for imbalanced visual regression", CVPR 2022.
    """
    label = nearest(np.array(labels.axes[0]), value)
    totals, counts = np.bincount(label, np.abs(error)), np.bincount(label)
    return float((totals[counts > 0] / counts[counts > 0]).mean()) if len(error) else float("nan")


def shot_groups(train_count: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The names of :data:`SHOTS` with the instances, (n,) of bool, that belong to them."""
    members = (train_count > MANY, (train_count >= FEW) & (train_count <= MANY), train_count < FEW)
    yield from zip(SHOTS, members)


def band_groups(value: np.ndarray, labels: LabelSpace) -> Iterator[tuple[str, np.ndarray]]:
    """Names such as ``20_29`` with the instances, (n,) of bool, whose true value lies there."""
    for name, low, high in bands(labels):
        yield name, (value >= low) & (value < high)


def mean(values: np.ndarray) -> float:
    """Mean; NaN of none."""
    return float(values.mean()) if len(values) else float("nan")
