"""Maps of what was predicted at every pixel, beside the picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from ldl.charts.drawing import in_unit, new_figure, save
from ldl.labels import LabelSpace

MOST_NAMED = 20
"""Labels that a legend names."""


def maps(
    path: Path,
    panels: Sequence[tuple[str, Sequence[np.ndarray | None]]],
    titles: Sequence[str],
    labels: LabelSpace,
) -> Path:
    """Rows of a picture and its maps.

    Args:
        path: The PNG.
        panels: Of each picture: its name, and what is shown: it, (H, W, 3) or (H, W) uint8, or None; then maps (H, W).
        titles: What is shown.
        labels: What maps hold: of two nominal labels the strength of the second in 0..1, dark where strong; of more
            the number of a label; of ordinal labels a value; on a grid values of the first and second axis in turn.
    """
    figure, grid = new_figure(3 * len(titles), 2.6 * len(panels), len(panels), len(titles), squeeze=False)
    for axes, (name, (picture, *shown)) in zip(grid, panels):
        if picture is not None:
            axes[0].imshow(picture, cmap="gray", vmin=0, vmax=255)
        for number, (axis, plane) in enumerate(zip(axes[1:], shown)):
            axis.imshow(plane, **_style(labels, number % max(1, labels.ndim)))
        axes[0].set_ylabel(name, fontsize=8)
        for axis in axes:
            axis.set(xticks=[], yticks=[])
    for axis, title in zip(grid[0], titles):
        axis.set_title(title, fontsize=9)
    for axis in range(labels.ndim):
        name = labels.axis_names[axis] if labels.axis_names else "value"
        label = in_unit(name, labels)
        figure.colorbar(grid[0, 1 + axis].images[0], ax=grid, label=label, fraction=0.03)
    if not labels.has_values and 2 < len(labels) <= MOST_NAMED:
        colors = label_colors(len(labels)) / 255
        handles = [Patch(color=color, label=name) for name, color in zip(labels.names, colors)]
        figure.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    return save(figure, path)


def label_colors(count: int) -> np.ndarray:
    """Colours of labels, (count, 3) uint8: ten strong ones, ten pale ones, and over again."""
    table = np.array([colormaps["tab20"](number)[:3] for number in (*range(0, 20, 2), *range(1, 20, 2))])
    return np.round(255 * table[np.arange(count) % 20]).astype(np.uint8)


def _style(labels: LabelSpace, axis: int) -> dict[str, Any]:
    if labels.has_values:
        return {"cmap": "viridis", "vmin": labels.axes[axis][0], "vmax": labels.axes[axis][-1]}
    if len(labels) == 2:
        return {"cmap": "gray_r", "vmin": 0, "vmax": 1}
    colors = ListedColormap(label_colors(len(labels)) / 255)
    return {"cmap": colors, "vmin": -0.5, "vmax": len(labels) - 0.5, "interpolation": "nearest"}
