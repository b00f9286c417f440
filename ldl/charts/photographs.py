"""Photographs with the faces that were found in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ldl.charts.drawing import draw_distribution, new_figure, save
from ldl.labels import LabelSpace

MOST_FACES = 10
"""Faces whose distributions are drawn; more could not be told apart."""


def photograph(
    path: Path,
    picture: np.ndarray,
    boxes: np.ndarray,
    distributions: np.ndarray | None,
    texts: Sequence[str],
    labels: LabelSpace,
) -> Path:
    """A photograph with a box and a text a face, beside the faces' distributions.

    Args:
        path: The PNG.
        picture: (H, W, 3) uint8.
        boxes: (n, 4) left, top, right, bottom, in pixels.
        distributions: (n, C) of the faces; None draws the photograph alone.
        texts: What is written at each box, such as its value.
        labels: What the distributions are over.
    """
    width = float(np.clip(4.2 * picture.shape[1] / picture.shape[0], 3, 9))
    if distributions is None:
        figure, left = new_figure(width, 4.2)
    else:
        figure, (left, right) = new_figure(width + 4, 4.4, 1, 2, width_ratios=[width, 4])
        _compare(right, distributions, texts, labels)
    left.imshow(picture)
    left.set_axis_off()
    for number, (box, text) in enumerate(zip(boxes, texts)):
        _mark(left, box, text, f"C{number % 10}")
    return save(figure, path)


def _compare(axis: Axes, distributions: np.ndarray, texts: Sequence[str], labels: LabelSpace) -> None:
    count = len(distributions)
    for number, (distribution, text) in enumerate(zip(distributions[:MOST_FACES], texts)):
        draw_distribution(axis, distribution, labels, f"C{number}", label=text, filled=count == 1)
    if labels.kind != "grid":
        axis.set_ylim(bottom=0)
        axis.set_ylabel("probability")
    axis.tick_params(labelsize=7)
    several = f", {MOST_FACES} of {count} faces" if count > MOST_FACES else ""
    axis.legend(fontsize=7, title=f"{labels.unit}{several}".removeprefix(", "), title_fontsize=7)


def _mark(axis: Axes, box: np.ndarray, text: str, color: str) -> None:
    x0, y0, x1, y1 = box
    axis.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=color, linewidth=1.8))
    ground = {"facecolor": color, "edgecolor": "none", "pad": 1.5}
    corner = (max(x0, 0), max(y0, 0))
    axis.annotate(text, corner, (2, 2), textcoords="offset points", color="white", fontsize=7, bbox=ground)
