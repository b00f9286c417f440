"""One prediction on its own: distribution, value, interval, and what it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.charts.drawing import PREDICTED, draw_distribution, new_figure, save
from ldl.labels import LabelSpace


def answer(
    path: Path,
    distribution: np.ndarray,
    labels: LabelSpace,
    value: float | np.ndarray | None = None,
    interval: np.ndarray | None = None,
    parts: np.ndarray | None = None,
) -> Path:
    """A distribution with its value and its interval, over thin lines of the distributions that it is made of.

    Args:
        path: The PNG.
        distribution: (C,).
        labels: What it is over.
        value: Of ordinal labels, or (2,) of a plane; None marks none.
        interval: (2,) of ordinal labels; of others it is not drawn.
        parts: (n, C) distributions of the parts, drawn over ordinal labels; None draws none.
    """
    figure, axis = new_figure(7, 3.6)
    ordinal = labels.kind == "ordinal"
    draw_distribution(axis, distribution, labels, PREDICTED, label="distribution", filled=True)
    if ordinal and parts is not None:
        for number, part in enumerate(parts):
            label = "what it rests on" if number == 0 else "_nolegend_"
            axis.plot(np.array(labels.axes[0]), part, color="0.45", linewidth=0.7, alpha=0.7, label=label)
    if ordinal and interval is not None:
        axis.axvspan(*interval, color=PREDICTED, alpha=0.1, linewidth=0, label="interval of 90%")
    if ordinal and value is not None:
        axis.axvline(float(value), color=PREDICTED, linewidth=1.4, linestyle="--", label="value")
    if labels.kind == "grid" and value is not None:
        first, second = np.asarray(value)
        axis.plot(second, first, "+", color="black", markersize=12, label="value")
    if labels.kind != "grid":
        axis.set_ylim(bottom=0)
        axis.set_ylabel("probability")
    if ordinal:
        axis.legend(fontsize=8, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return save(figure, path)
