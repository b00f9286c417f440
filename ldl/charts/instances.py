"""Charts of single instances: predicted distributions, values, intervals and images."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.charts.drawing import (
    PREDICTED,
    TRUE,
    draw_distribution,
    draw_picture,
    new_figure,
    new_sheet,
    save,
    set_probability_axis,
    share_scale,
)
from ldl.labels import LabelSpace

MOST_LETTERS = 20
"""Last letters of a title above an image; longer titles would run into the panels beside them."""

PALEST = 0.08
"""Least opacity of a mark."""


def distributions(path: Path, predicted: np.ndarray, target: np.ndarray, labels: LabelSpace, titles: list[str]) -> Path:
    """Draw predicted and true distributions, (n, C) each, one panel per instance."""
    figure, axes = new_sheet(len(predicted), 3, 4.2, 2.6)
    for axis, p, d, title in zip(axes, predicted, target, titles):
        draw_distribution(axis, d, labels, color=TRUE, label="true", filled=True)
        draw_distribution(axis, p, labels, color=PREDICTED, label="predicted", filled=False)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=8)
        set_probability_axis(axis, labels, fontsize=8)
    share_scale(axes, 3)
    legend = axes[0].legend(fontsize=8)
    if labels.kind == "grid":
        # In the legend every circle has the same size.
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
    """Draw images, each with its predicted distribution, true value and predicted value.

    Args:
        path: The PNG.
        pictures: (n, H, W, 3) uint8.
        predicted: (n, C) distributions.
        values: (n,) true values.
        predicted_values: (n,) point predictions.
        labels: Ordinal labels.
        titles: One per image.
    """
    columns = min(3, len(pictures))
    rows, ratios = -(-len(pictures) // columns), [1, 1.6] * columns
    figure, axes = new_figure(4.6 * columns, 2.1 * rows + 0.35, rows, 2 * columns, squeeze=False, width_ratios=ratios)
    pairs = axes.reshape(-1, 2)
    for unused in pairs[len(pictures) :].ravel():
        unused.set_visible(False)
    for number, ((left, right), title) in enumerate(zip(pairs, titles)):
        value, decoded = values[number], predicted_values[number]
        draw_picture(left, pictures[number])
        draw_distribution(right, predicted[number], labels, color=PREDICTED, label="distribution", filled=True)
        set_probability_axis(right, labels, fontsize=8)
        right.tick_params(labelsize=7)
        right.axvline(value, color="0.15", linewidth=1.2, label="true")
        right.axvline(decoded, color=PREDICTED, linewidth=1.2, linestyle="--", label="predicted")
        error = f"error {decoded - value:+.3g} {labels.unit}".rstrip()
        right.set_title(f"true {value:.3g}, predicted {decoded:.3g}: {error}", fontsize=8)
        left.set_title(title[-MOST_LETTERS:], fontsize=8)
    handles, names = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False)
    share_scale(pairs[: len(pictures), 1], columns)
    return save(figure, path)


def answer(
    path: Path,
    distribution: np.ndarray,
    labels: LabelSpace,
    value: float | np.ndarray | None = None,
    interval: np.ndarray | None = None,
    parts: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Path:
    """Draw a distribution with its value and interval, above marks at the values of its evidence.

    Args:
        path: The PNG.
        distribution: (C,).
        labels: The label space.
        value: Value of ordinal labels, or (2,) of a grid; None marks none.
        interval: (2,) of ordinal labels; intervals of a grid are not drawn.
        parts: (n,) values of the evidence, for ordinal labels; None marks none.
        weights: (n,) of the evidence: marks of little weight are pale.
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
        top, alpha = float(distribution.max()), np.clip(np.abs(weights) / np.abs(weights).max(), PALEST, 1)
        axis.vlines(parts, -0.1 * top, -0.02 * top, color="black", alpha=alpha, linewidth=1, label="evidence")
        axis.axhline(0, color="0.7", linewidth=0.6)
        axis.set(ylim=(-0.12 * top, None), ylabel="probability")
    else:
        set_probability_axis(axis, labels)
    if ordinal:
        figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return save(figure, path)
