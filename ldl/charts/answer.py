"""One prediction on its own: distribution, value, interval, and what it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ldl.charts.drawing import PREDICTED, draw_distribution, new_figure, save
from ldl.labels import LabelSpace

PALEST = 0.08
"""Of a mark, however little it weighs."""


def answer(
    path: Path,
    distribution: np.ndarray,
    labels: LabelSpace,
    value: float | np.ndarray | None = None,
    interval: np.ndarray | None = None,
    parts: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Path:
    """A distribution with its value and its interval, over marks where the parts lie that it is made of.

    Args:
        path: The PNG.
        distribution: (C,).
        labels: What it is over.
        value: Of ordinal labels, or (2,) of a plane; None marks none.
        interval: (2,) of ordinal labels; of others it is not drawn.
        parts: (n,) values of the parts, of ordinal labels; None marks none.
        weights: (n,) of the parts: those of little weight are pale.
    """
    figure, axis = new_figure(7, 3.6)
    ordinal = labels.kind == "ordinal"
    draw_distribution(axis, distribution, labels, PREDICTED, label="distribution", filled=True)
    if ordinal and interval is not None:
        axis.axvspan(*interval, color=PREDICTED, alpha=0.1, linewidth=0, label="interval of 90%")
    if ordinal and value is not None:
        axis.axvline(float(value), color=PREDICTED, linewidth=1.4, linestyle="--", label="value")
    if labels.kind == "grid" and value is not None:
        first, second = np.asarray(value)
        axis.plot(second, first, "+", color="black", markersize=12, label="value")
    if ordinal and parts is not None and weights is not None:
        _mark(axis, parts, np.abs(weights), float(distribution.max()))
    elif labels.kind != "grid":
        axis.set_ylim(bottom=0)
    if labels.kind != "grid":
        axis.set_ylabel("probability")
    if ordinal:
        figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return save(figure, path)


def _mark(axis: Axes, values: np.ndarray, weights: np.ndarray, top: float) -> None:
    """Strokes below the distribution."""
    alpha = np.clip(weights / weights.max(), PALEST, 1)
    axis.vlines(values, -0.1 * top, -0.02 * top, color="black", alpha=alpha, linewidth=1, label="what it rests on")
    axis.axhline(0, color="0.7", linewidth=0.6)
    axis.set_ylim(bottom=-0.12 * top)
