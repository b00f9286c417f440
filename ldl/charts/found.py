"""What a model found by itself in pictures: groups of them, and places in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ldl.charts.drawing import PREDICTED, new_figure, save

EACH = 12
"""Pictures of a group that are shown."""
TRUE = "tab:green"


def groups(path: Path, pictures: np.ndarray, group: np.ndarray, seed: int = 0) -> Path:
    """Sheets of random pictures, one row a group.

    Args:
        path: The PNG.
        pictures: (n, H, W) grey or (n, H, W, 3), uint8.
        group: (n,) number of each one's group, from 0.
        seed: Seed of the choice.
    """
    rng = np.random.default_rng(seed)
    count = int(group.max()) + 1
    height, width = pictures.shape[1:3]
    figure, axes = new_figure(0.75 * EACH + 0.6, 0.75 * count * height / width + 0.4, count, 1, squeeze=False)
    for row, axis in enumerate(axes[:, 0]):
        members = rng.permutation(np.flatnonzero(group == row))
        strip = np.full((height, EACH * width, *pictures.shape[3:]), 255, np.uint8)
        for place, member in enumerate(members[:EACH]):
            strip[:, place * width : (place + 1) * width] = pictures[member]
        axis.imshow(strip, cmap="gray", vmin=0, vmax=255)
        axis.set_ylabel(f"group {row + 1}\n{len(members)}", fontsize=8)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    return save(figure, path)


def score_maps(
    path: Path,
    pictures: np.ndarray,
    maps: np.ndarray,
    found: np.ndarray,
    window: int,
    stride: int = 1,
    true: np.ndarray | None = None,
    titles: list[str] | None = None,
) -> Path:
    """Pictures with the window that was found, above the scores of all windows.

    Args:
        path: The PNG.
        pictures: (n, H, W) grey, uint8.
        maps: (n, rows, columns) score of every window, by its top left corner.
        found: (n, 2) corner of the window that was found, down and right in pixels.
        window: Side of the windows in pixels.
        stride: Pixels between windows.
        true: (n, 2) corner of the true window, or None.
        titles: One a picture, or None.
    """
    figure, axes = new_figure(1.6 * len(pictures) + 0.6, 3.6, 2, len(pictures), squeeze=False)
    marks: list[tuple[np.ndarray, str, dict[str, Any]]]
    marks = [(found, "x", {"color": PREDICTED, "linestyle": "--", "label": "found"})]
    if true is not None:
        marks.insert(0, (true, "o", {"color": TRUE, "linestyle": "-", "label": "true"}))
    rows, columns = maps.shape[1:]
    # The middle of a cell is the corner of its window.
    extent = (-stride / 2, (columns - 0.5) * stride, (rows - 0.5) * stride, -stride / 2)
    for number, (upper, lower) in enumerate(axes.T):
        upper.imshow(pictures[number], cmap="gray", vmin=0, vmax=255)
        image = lower.imshow(maps[number], cmap="viridis", vmin=maps.min(), vmax=maps.max(), extent=extent)
        for corners, marker, style in marks:
            y, x = corners[number]
            upper.add_patch(Rectangle((x - 0.5, y - 0.5), window, window, fill=False, linewidth=1.5, **style))
            lower.plot(x, y, marker=marker, color="white", markersize=5, fillstyle="none")
        upper.set_axis_off()
        lower.tick_params(labelsize=6)
        if titles:
            upper.set_title(titles[number], fontsize=8)
    handles = [Rectangle((0, 0), 1, 1, fill=False, **style) for *_, style in reversed(marks)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.colorbar(image, ax=axes[1], label="h", fraction=0.02)
    return save(figure, path)
