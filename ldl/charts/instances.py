"""Single instances: what was predicted of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ldl.charts.drawing import PREDICTED, TRUE, draw_distribution, save
from ldl.labels import LabelSpace


def distributions(path: Path, predicted: np.ndarray, target: np.ndarray, labels: LabelSpace, titles: list[str]) -> Path:
    """Predicted against true distributions, (n, C) each, one panel an instance."""
    columns = min(3, len(predicted))
    rows = -(-len(predicted) // columns)
    figure = Figure(figsize=(4.2 * columns, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(predicted) :]:
        axis.set_visible(False)
    for axis, p, d, title in zip(axes, predicted, target, titles):
        draw_distribution(axis, d, labels, color=TRUE, label="true", filled=True)
        draw_distribution(axis, p, labels, color=PREDICTED, label="predicted", filled=False)
        axis.set_title(title, fontsize=9)
    if labels.kind == "grid":
        # In the legend a circle is of one size, whatever the first panel's largest is.
        for handle in axes[0].legend(fontsize=8).legend_handles:
            handle.set_sizes([40])
    else:
        axes[0].legend(fontsize=8)
    return save(figure, path)
