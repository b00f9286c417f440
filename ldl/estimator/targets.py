"""What ``y`` means: distributions over labels, or values around which distributions are laid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ldl.data.loaded import Loaded
from ldl.data.tables.distributions import LABEL_PREFIX, check_distributions
from ldl.data.tables.label_grid import choose_grid
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace


def has_values(y: np.ndarray, labels: LabelSpace | None) -> bool:
    """Whether ``y`` holds a value a row, (N,) or (N, 1), or a point of a grid a row, in place of a distribution."""
    if y.ndim == 1 or labels is None:
        return y.ndim == 1 or y.shape[1] == 1
    return y.shape[1] == max(labels.ndim, 1) and len(labels) != y.shape[1]


def read_distributions(y: np.ndarray, names: Sequence[object] | None, labels: LabelSpace | None) -> Loaded:
    """Labels and targets of rows (N, C); ``labels`` None are ``names``, those of the columns, or numbers.

    Raises LDLError: a row that is no distribution, or another number of labels.
    """
    if labels is None:
        columns = range(y.shape[1]) if names is None else names
        labels = LabelSpace.nominal([str(column).removeprefix(LABEL_PREFIX) for column in columns])
    if len(labels) != y.shape[1]:
        raise LDLError(f"y has {y.shape[1]} columns and labels are {len(labels)}; give a column a label")
    target = check_distributions(y, "y", fix="divide rows by their sums, or give one value a row, (N,)")
    return Loaded(labels, {"target": torch.tensor(target, dtype=torch.float32)})


def read_values(
    y: np.ndarray, labels: LabelSpace | None, step: float | None, sigma: float | None, encoder: Encoder
) -> Loaded:
    """Labels, targets and values of (N,) values or (N, 2) points; where ``labels`` are None they are chosen by values.

    Raises LDLError: labels without values, a value outside of them, or more labels than can be.
    """
    if labels is None:
        grid = choose_grid(y, step=step, sigma=sigma)
        labels, sigma = grid.labels(), grid.sigma
    elif sigma is None and labels.has_values:
        axis = min(labels.axes, key=lambda axis: np.ptp(axis))
        spacing = float(np.diff(axis).min()) if len(axis) > 1 else 1.0
        sigma = choose_grid(y, axis[0], axis[-1], spacing).sigma
    target = labels.encode(torch.tensor(y, dtype=torch.float32), 1.0 if sigma is None else sigma, encoder)
    return Loaded(labels, {"target": target}, y)
