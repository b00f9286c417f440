"""How much the figures of a cross-validation differ from fold to fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ldl.charts.drawing import PREDICTED, new_figure, save

LEAST = 3
"""Folds of which a box says something."""

MOST_PANELS = 8


def folds(path: Path, columns: Mapping[str, Sequence[float]]) -> Path | None:
    """A box a metric over its figures of each fold, every fold a point; None of fewer than three folds.

    Args:
        path: The PNG.
        columns: Figures of the folds, in their order, by the name of the metric with its unit; of more than eight the
            first are drawn, and figures that are not finite are left out and counted.
    """
    drawn = dict(list(columns.items())[:MOST_PANELS])
    if not drawn or len(next(iter(drawn.values()))) < LEAST:
        return None
    wide = min(4, len(drawn))
    rows = -(-len(drawn) // wide)
    figure, axes = new_figure(2.3 * wide, 2.7 * rows, rows, wide, squeeze=False)
    for unused in axes.ravel()[len(drawn) :]:
        unused.set_visible(False)
    for axis, (name, column) in zip(axes.ravel(), drawn.items()):
        figures = np.array(column, dtype=float)
        good = figures[np.isfinite(figures)]
        axis.boxplot(good, widths=0.5, showfliers=False, medianprops={"color": "0.2"})
        # Side by side in the order of the folds, so that a trend over them shows.
        axis.plot(np.linspace(0.82, 1.18, len(figures)), figures, ".", color=PREDICTED, markersize=5, alpha=0.7)
        gone = f", {len(figures) - len(good)} not finite" if len(good) < len(figures) else ""
        axis.set_title(name, fontsize=9)
        axis.set_xlabel(f"{len(figures)} folds{gone}", fontsize=8)
        axis.set_xticks([])
        axis.tick_params(labelsize=8)
    return save(figure, path)
