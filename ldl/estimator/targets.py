"""What ``y`` means: distributions over labels, or values around which distributions are laid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ldl.data.loaded import Loaded
from ldl.data.tables.checks import check_distributions
from ldl.data.tables.distributions import LABEL_PREFIX
from ldl.data.tables.label_grid import choose_grid, choose_sigma
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace


def has_values(y: np.ndarray, labels: LabelSpace | None) -> bool:
    """Whether ``y`` holds a value a row, (N,) or (N, 1), or a point of a grid a row, in place of a distribution."""
    if y.ndim == 1 or labels is None:
        return y.ndim == 1 or y.shape[1] == 1
    return y.shape[1] == max(labels.ndim, 1) and len(labels) != y.shape[1]


def read_distributions(y: np.ndarray, names: Sequence[object] | None, labels: LabelSpace | None) -> Loaded:
    """Labels and targets of rows (N, C); ``labels`` None are ``names``, those of the columns, or numbers.

    Raises LDLError: another shape, a row that is no distribution, or another number of labels.
    """
    if y.ndim != 2:
        raise LDLError(f"y has shape {y.shape}; give distributions, (N, {'C' if labels is None else len(labels)})")
    if labels is None:
        columns = range(y.shape[1]) if names is None else names
        labels = LabelSpace.nominal([str(column).removeprefix(LABEL_PREFIX) for column in columns])
    if len(labels) != y.shape[1]:
        raise LDLError(f"y has {y.shape[1]} columns and labels are {len(labels)}; give a column a label")
    target = check_distributions(y, "y", fix="divide rows by their sums, or give one value a row, (N,)")
    return Loaded(labels, {"target": torch.tensor(target, dtype=torch.float32)})


def read_values(y: np.ndarray, labels: LabelSpace, sigma: float, encoder: Encoder) -> Loaded:
    """Labels, targets and values of values (N,) or (N, 1), or points (N, 2).

    Raises LDLError: labels without values, another shape, a value outside of the labels, or a ``sigma`` that is not
    positive.
    """
    y = y.squeeze(1) if y.shape[1:] == (1,) else y
    if labels.has_values and y.shape[1:] != ((2,) if labels.ndim == 2 else ()):
        raise LDLError(f"y has shape {y.shape}; give {'points, (N, 2)' if labels.ndim == 2 else 'values, (N,)'}")
    return Loaded(labels, {"target": labels.encode(torch.tensor(y, dtype=torch.float32), sigma, encoder)}, y)


def choose_labels(
    y: np.ndarray, labels: LabelSpace | None, step: float | None, sigma: float | None
) -> tuple[LabelSpace, float]:
    """Labels and deviation for values, as tables have them where they are None. Raises LDLError: too many labels."""
    if labels is None:
        grid = choose_grid(y, step=step, sigma=sigma)
        return grid.labels(), grid.sigma
    if sigma is not None or not labels.has_values:
        return labels, sigma or 1.0
    axis = min(labels.axes, key=len)
    spacing = min(float(np.diff(axis).min()) for axis in labels.axes if len(axis) > 1) if len(labels) > 1 else 1.0
    return labels, choose_sigma(spacing, float(axis[-1] - axis[0]))
