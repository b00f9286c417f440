"""Charts of images: photographs with faces, maps of every pixel, groups of images, and score maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle

from ldl.charts.drawing import (
    PREDICTED,
    draw_distribution,
    draw_picture,
    in_unit,
    legend_name,
    new_figure,
    save,
    set_probability_axis,
)
from ldl.labels import LabelSpace

MOST_FACES = 10
"""Largest number of faces of a photograph whose distributions are drawn; more would be indistinguishable."""

MOST_NAMED = 20
"""Largest number of labels in the legend of a map."""

GROUP_SHOWN = 12
"""Largest number of images that are drawn per group."""


def photograph(
    path: Path,
    picture: np.ndarray,
    boxes: np.ndarray,
    distributions: np.ndarray | None,
    texts: Sequence[str],
    labels: LabelSpace,
) -> Path:
    """Draw a photograph with a box and a text per face, beside the faces' distributions.

    Args:
        path: The PNG.
        picture: (H, W, 3) uint8.
        boxes: (n, 4) left, top, right, bottom, in pixels.
        distributions: (n, C) of the faces; None draws the photograph alone.
        texts: Text of each box, such as the predicted value.
        labels: Label space of the distributions.
    """
    width = float(np.clip(4.2 * picture.shape[1] / picture.shape[0], 3, 9))
    if distributions is None:
        figure, left = new_figure(width, 4.2)
    else:
        figure, (left, right) = new_figure(width + 4, 4.4, 1, 2, width_ratios=[width, 4])
        count = len(distributions)
        for number, (distribution, text) in enumerate(zip(distributions[:MOST_FACES], texts)):
            draw_distribution(right, distribution, labels, f"C{number}", label=legend_name(text), filled=count == 1)
        set_probability_axis(right, labels)
        right.tick_params(labelsize=7)
        several = f", {MOST_FACES} of {count} faces" if count > MOST_FACES else ""
        right.legend(fontsize=7, title=f"{labels.unit}{several}".removeprefix(", "), title_fontsize=7)
    draw_picture(left, picture)
    for number, ((x0, y0, x1, y1), text) in enumerate(zip(boxes, texts)):
        color = f"C{number % 10}"
        left.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=color, linewidth=1.8))
        box, corner = {"facecolor": color, "edgecolor": "none", "pad": 1.5}, (max(x0, 0), max(y0, 0))
        left.annotate(text, corner, (2, 2), textcoords="offset points", color="white", fontsize=7, bbox=box)
    return save(figure, path)


def maps(
    path: Path,
    panels: Sequence[tuple[str, Sequence[np.ndarray | None]]],
    titles: Sequence[str],
    labels: LabelSpace,
) -> Path:
    """Draw rows of an image and its maps.

    Args:
        path: The PNG.
        panels: Per image its name, then the image, (H, W, 3) or (H, W) uint8, or None, and its maps (H, W).
        titles: Titles of the columns.
        labels: Label space of the maps. Maps of two nominal labels hold the probability of the second label, of more
            nominal labels the index of a label, of ordinal labels a value. On a grid, maps of values of the first and
            the second axis alternate.
    """
    figure, grid = new_figure(3 * len(titles), 2.6 * len(panels), len(panels), len(titles), squeeze=False)
    for axes, (name, (picture, *shown)) in zip(grid, panels):
        if picture is not None:
            axes[0].imshow(picture, cmap="gray", vmin=0, vmax=255)
        for number, (axis, plane) in enumerate(zip(axes[1:], shown)):
            axis.imshow(plane, **_map_style(labels, number % max(1, labels.ndim)))
        axes[0].set_ylabel(name, fontsize=8)
        for axis in axes:
            axis.set(xticks=[], yticks=[])
    for axis, title in zip(grid[0], titles):
        axis.set_title(title, fontsize=9)
    for number in range(labels.ndim):
        label = in_unit(labels.axis_names[number] if labels.axis_names else "value", labels)
        figure.colorbar(grid[0, 1 + number].images[0], ax=grid, label=label, fraction=0.03)
    if not labels.has_values and 2 < len(labels) <= MOST_NAMED:
        colors = label_colors(len(labels)) / 255
        handles = [Patch(color=color, label=name) for name, color in zip(labels.names, colors)]
        figure.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    return save(figure, path)


def label_colors(count: int) -> np.ndarray:
    """Return colours of labels, (count, 3) uint8: ten saturated and ten pale colours, then the same colours again."""
    table = np.array([colormaps["tab20"](number)[:3] for number in (*range(0, 20, 2), *range(1, 20, 2))])
    return np.round(255 * table[np.arange(count) % 20]).astype(np.uint8)


def _map_style(labels: LabelSpace, axis: int) -> dict[str, Any]:
    if labels.has_values:
        return {"cmap": "viridis", "vmin": labels.axes[axis][0], "vmax": labels.axes[axis][-1]}
    if len(labels) == 2:
        return {"cmap": "gray_r", "vmin": 0, "vmax": 1}
    colors = ListedColormap(label_colors(len(labels)) / 255)
    return {"cmap": colors, "vmin": -0.5, "vmax": len(labels) - 0.5, "interpolation": "nearest"}


def groups(path: Path, pictures: np.ndarray, group: np.ndarray, seed: int = 0) -> Path:
    """Draw random images of every group in one row.

    Args:
        path: The PNG.
        pictures: (n, H, W) grey or (n, H, W, 3), uint8.
        group: (n,) group of each image, from 0.
        seed: Seed of the choice.
    """
    rng = np.random.default_rng(seed)
    count = int(group.max()) + 1
    height, width = pictures.shape[1:3]
    figure, axes = new_figure(0.75 * GROUP_SHOWN + 0.6, 0.75 * count * height / width + 0.4, count, 1, squeeze=False)
    for row, axis in enumerate(axes[:, 0]):
        members = rng.permutation(np.flatnonzero(group == row))
        strip = np.full((height, GROUP_SHOWN * width, *pictures.shape[3:]), 255, np.uint8)
        for column, member in enumerate(members[:GROUP_SHOWN]):
            strip[:, column * width : (column + 1) * width] = pictures[member]
        axis.imshow(strip, cmap="gray", vmin=0, vmax=255)
        axis.set_ylabel(f"group {row + 1}\n{len(members)}", fontsize=8)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    return save(figure, path)


def score_maps(
    path: Path,
    pictures: np.ndarray,
    maps: np.ndarray,
    best: np.ndarray,
    window: int,
    stride: int = 1,
    true: np.ndarray | None = None,
    titles: list[str] | None = None,
) -> Path:
    """Draw images with the best window, above the scores of all windows.

    Args:
        path: The PNG.
        pictures: (n, H, W) grey, uint8.
        maps: (n, rows, columns) score of every window, by its top left corner.
        best: (n, 2) corner of the best window, down and right in pixels.
        window: Side of the windows in pixels.
        stride: Pixels between windows.
        true: (n, 2) corner of the true window, or None.
        titles: Title of each image, or None.
    """
    figure, axes = new_figure(1.6 * len(pictures) + 0.6, 3.6, 2, len(pictures), squeeze=False)
    marks: list[tuple[np.ndarray, str, dict[str, Any]]]
    marks = [(best, "x", {"color": PREDICTED, "linestyle": "--", "label": "found"})]
    if true is not None:
        marks.insert(0, (true, "o", {"color": "tab:green", "linestyle": "-", "label": "true"}))
    rows, columns = maps.shape[1:]
    # The centre of each square of the map is the corner of its window.
    extent = (-stride / 2, (columns - 0.5) * stride, (rows - 0.5) * stride, -stride / 2)
    for number, (upper, lower) in enumerate(axes.T):
        draw_picture(upper, pictures[number])
        image = lower.imshow(maps[number], cmap="viridis", vmin=maps.min(), vmax=maps.max(), extent=extent)
        for corners, marker, style in marks:
            y, x = corners[number]
            upper.add_patch(Rectangle((x - 0.5, y - 0.5), window, window, fill=False, linewidth=1.5, **style))
            lower.plot(x, y, marker=marker, color="white", markersize=5, fillstyle="none")
        lower.tick_params(labelsize=6)
        if titles:
            upper.set_title(titles[number], fontsize=8)
    handles = [Rectangle((0, 0), 1, 1, fill=False, **style) for *_, style in reversed(marks)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.colorbar(image, ax=axes[1], label="h", fraction=0.02)
    return save(figure, path)
