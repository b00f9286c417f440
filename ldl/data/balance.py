"""Draws that see rare labels more often: label distribution smoothing (LDS)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ldl.errors import LDLError
from ldl.labels import LabelSpace

CHUNK = 1 << 16
"""Rows whose targets are in memory at a time."""


def balanced_weights(target: Any, rows: np.ndarray, labels: LabelSpace, power: float, width: float = 2.0) -> np.ndarray:
    """How often each of the training ``rows`` is to be drawn, (n,) float64, with mean 1.

    The density of a label is the mean of the training targets, smoothed over ordinal labels by a Gaussian (Yang et
    al., "Delving into Deep Imbalanced Regression", ICML 2021, Section 3.1); a row counts the mean of
    ``density ** -power`` under its own target.

    Args:
        target: Targets of all instances, (N, C), a tensor or a column of ``ldl.data.column``; None has none.
        rows: (n,) the training part.
        labels: The label space. Labels on a grid and nominal ones are not smoothed.
        power: 0 draws all alike, 1 every label alike, 1/2 what lies between.
        width: Standard deviation of the Gaussian, in the unit of the labels.

    Raises:
        LDLError: targets of every pixel.
    """
    parts = [torch.from_numpy(part) for part in np.array_split(rows, -(-len(rows) // CHUNK))]
    if target is None or target[parts[0][:1]].ndim != 2:
        raise LDLError("data.balance needs a target an instance, and these have one at every pixel; leave it out")
    density = torch.stack([target[part].double().sum(0) for part in parts]).sum(0) / len(rows)
    if labels.kind == "ordinal" and labels.ndim == 1:
        density = labels.encode(labels.points[:, 0], width).double() @ density
    # A label that no training row describes is never asked for.
    rarity = torch.where(density > 0, density, torch.inf) ** -power
    weights = torch.cat([target[part].double() @ rarity for part in parts])
    return (weights / weights.mean()).numpy()


def draw(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many numbers of rows as there are weights of mean 1, (n,) int64, in random order.

    Systematic: a row of weight w is drawn as often as the whole number below or above w, so that no more chance than
    needed comes in.
    """
    order = rng.permutation(len(weights))
    ends = np.cumsum(weights[order])
    ends *= len(weights) / ends[-1]
    counts = np.diff(np.floor(np.append(0.0, ends) + rng.random()))
    counts[-1] += len(weights) - counts.sum()
    return rng.permutation(np.repeat(order, counts.astype(np.int64)))
