"""Single instances: what was predicted of each, beside its picture where it is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ldl.charts.drawing import PREDICTED, TRUE, draw_distribution, new_figure, save
from ldl.labels import LabelSpace

MOST_LETTERS = 20
"""Longer titles would run into the panels beside them."""


def distributions(path: Path, predicted: np.ndarray, target: np.ndarray, labels: LabelSpace, titles: list[str]) -> Path:
    """Predicted against true distributions, (n, C) each, one panel an instance."""
    columns = min(3, len(predicted))
    rows = -(-len(predicted) // columns)
    figure, axes = new_figure(4.2 * columns, 2.6 * rows, rows, columns, squeeze=False)
    axes = axes.ravel()
    for axis in axes[len(predicted) :]:
        axis.set_visible(False)
    for axis, p, d, title in zip(axes, predicted, target, titles):
        draw_distribution(axis, d, labels, color=TRUE, label="true", filled=True)
        draw_distribution(axis, p, labels, color=PREDICTED, label="predicted", filled=False)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=8)
        if labels.kind != "grid":
            axis.set_ylim(bottom=0)
    if labels.kind != "grid":
        for axis in axes[::columns]:
            axis.set_ylabel("probability", fontsize=8)
    legend = axes[0].legend(fontsize=8)
    if labels.kind == "grid":
        # In the legend a circle is of one size, whatever the first panel's largest is.
        for handle in legend.legend_handles:
            handle.set_sizes([40])
    return save(figure, path)


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
    ratios = [1, 1.6] * columns
    figure, axes = new_figure(4.6 * columns, 2.1 * rows + 0.35, rows, 2 * columns, squeeze=False, width_ratios=ratios)
    pairs = axes.reshape(-1, 2)
    for unused in pairs[len(pictures) :].ravel():
        unused.set_visible(False)
    for (left, right), picture, distribution, value, predicted_value, title in zip(
        pairs, pictures, predicted, values, predicted_values, titles
    ):
        _draw(left, right, picture, distribution, labels)
        right.axvline(value, color="0.15", linewidth=1.2, label="true")
        right.axvline(predicted_value, color=PREDICTED, linewidth=1.2, linestyle="--", label="predicted")
        error = f"error {predicted_value - value:+.3g} {labels.unit}".rstrip()
        right.set_title(f"true {value:.3g}, predicted {predicted_value:.3g}: {error}", fontsize=8)
        short = title if len(title) <= MOST_LETTERS else f"{title[: MOST_LETTERS - 8]}…{title[-7:]}"
        left.set_title(short, fontsize=8)
    handles, names = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False)
    for right in pairs[: len(pictures) : columns, 1]:
        right.set_ylabel("probability", fontsize=8)
    return save(figure, path)


def prediction(
    path: Path, picture: np.ndarray, distribution: np.ndarray, value: float | None, labels: LabelSpace
) -> Path:
    """One picture, (H, W, 3) uint8, beside its predicted distribution, (C,).

    ``value`` is the decoded value, marked in the distribution of ordinal labels; None marks nothing.
    """
    figure, (left, axis) = new_figure(7.5, 3.2, 1, 2, width_ratios=[1, 1.6])
    _draw(left, axis, picture, distribution, labels)
    if labels.kind != "grid":
        axis.set_ylabel("probability")
    if value is not None and labels.kind == "ordinal":
        axis.axvline(value, color=PREDICTED, linewidth=1.2, linestyle="--")
        axis.set_title(f"predicted {value:.3g} {labels.unit}".rstrip())
    return save(figure, path)


def _draw(left: Axes, right: Axes, picture: np.ndarray, distribution: np.ndarray, labels: LabelSpace) -> None:
    left.imshow(picture)
    left.set_axis_off()
    draw_distribution(right, distribution, labels, color=PREDICTED, label="distribution", filled=True)
    if labels.kind != "grid":
        right.set_ylim(bottom=0)
    right.tick_params(labelsize=7)
