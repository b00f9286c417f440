"""Pictures beside what was predicted of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ldl.charts.drawing import PREDICTED, draw_distribution, save
from ldl.labels import LabelSpace

MOST_LETTERS = 20
"""Longer titles would run into the panels beside them."""


def faces(
    path: Path,
    pictures: np.ndarray,
    predicted: np.ndarray,
    values: np.ndarray,
    predicted_values: np.ndarray,
    labels: LabelSpace,
    titles: list[str],
) -> Path:
    """A sheet of pictures, each with its predicted distribution, its true and its predicted value.

    Args:
        path: The PNG.
        pictures: (n, H, W, 3) uint8.
        predicted: (n, C) distributions.
        values: (n,) true values.
        predicted_values: (n,) decoded values.
        labels: Ordinal labels.
        titles: One a picture.
    """
    columns = min(3, len(pictures))
    rows = -(-len(pictures) // columns)
    figure = Figure(figsize=(4.6 * columns, 2.1 * rows + 0.35), layout="constrained")
    panels = figure.subplots(rows, 2 * columns, squeeze=False, width_ratios=[1, 1.6] * columns).reshape(-1, 2)
    for unused in panels[len(pictures) :].ravel():
        unused.set_visible(False)
    for (left, right), picture, distribution, value, predicted_value, title in zip(
        panels, pictures, predicted, values, predicted_values, titles
    ):
        _draw(left, right, picture, distribution, labels)
        right.axvline(value, color="0.15", linewidth=1.2, label="true")
        right.axvline(predicted_value, color=PREDICTED, linewidth=1.2, linestyle="--", label="predicted")
        right.set_title(f"true {_number(value)}, predicted {_number(predicted_value)}", fontsize=9)
        left.set_title(_short(title), fontsize=8)
    handles, names = panels[0, 1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False)
    return save(figure, path)


def prediction(
    path: Path, picture: np.ndarray, distribution: np.ndarray, value: float | None, labels: LabelSpace
) -> Path:
    """One picture, (H, W, 3) uint8, beside its predicted distribution, (C,).

    ``value`` is the decoded value, marked in the distribution of ordinal labels; None marks nothing.
    """
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    left, axis = figure.subplots(1, 2, width_ratios=[1, 1.6])
    _draw(left, axis, picture, distribution, labels)
    if labels.kind != "grid":
        axis.set_ylabel("probability")
    if value is not None and labels.kind == "ordinal":
        axis.axvline(value, color=PREDICTED, linewidth=1.2, linestyle="--")
        axis.set_title(f"predicted {_number(value)} {labels.unit}".rstrip())
    return save(figure, path)


def _draw(left: Axes, right: Axes, picture: np.ndarray, distribution: np.ndarray, labels: LabelSpace) -> None:
    left.imshow(picture)
    left.set_axis_off()
    draw_distribution(right, distribution, labels, color=PREDICTED, label="distribution", filled=True)
    if labels.kind != "grid":
        right.set_ylim(bottom=0)
    right.tick_params(labelsize=7)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _short(title: str) -> str:
    return title if len(title) <= MOST_LETTERS else f"{title[: MOST_LETTERS - 8]}…{title[-7:]}"
