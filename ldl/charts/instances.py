"""Charts of a run. Each function writes one PNG and returns its path."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ldl.labels import LabelSpace

_TRUE, _PREDICTED = "0.55", "tab:blue"


def distributions(path: Path, predicted: np.ndarray, target: np.ndarray, labels: LabelSpace, titles: list[str]) -> Path:
    """Predicted against true distributions, (n, C) each, one panel an instance."""
    columns = min(3, len(predicted))
    rows = -(-len(predicted) // columns)
    figure = Figure(figsize=(4.2 * columns, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(predicted) :]:
        axis.set_visible(False)
    for axis, p, d, title in zip(axes, predicted, target, titles):
        _draw(axis, d, labels, color=_TRUE, label="true", filled=True)
        _draw(axis, p, labels, color=_PREDICTED, label="predicted", filled=False)
        axis.set_title(title, fontsize=9)
    axes[0].legend(fontsize=8)
    return _save(figure, path)


def leaves(path: Path, leaf_distributions: np.ndarray, labels: LabelSpace, usage: np.ndarray) -> Path:
    """All leaves of one tree, (L, C), a row a leaf; ``usage`` (L,) is the share of a test batch that each holds."""
    figure = Figure(figsize=(8, 1.5 + 0.09 * len(leaf_distributions)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[5, 1], sharey=True)
    image = left.imshow(leaf_distributions, aspect="auto", interpolation="nearest", cmap="viridis")
    ticks = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), 9)).round().astype(int))
    left.set_xticks(ticks, [labels.names[tick] for tick in ticks], rotation=0 if labels.has_values else 30)
    left.set(xlabel=labels.unit or "label", ylabel="leaf", title="leaf distributions of the first tree")
    figure.colorbar(image, ax=left, label="probability")
    right.barh(np.arange(len(usage)), usage, color="0.5")
    right.set(xlabel="share of a\ntest batch", title="use")
    return _save(figure, path)


def values(path: Path, predicted: np.ndarray, true: np.ndarray, labels: LabelSpace) -> Path:
    """Predicted against true values, (n,) each; on a grid (n, 2), one panel an axis."""
    predicted, true = predicted.reshape(len(predicted), -1), true.reshape(len(true), -1)
    figure = Figure(figsize=(5 * predicted.shape[1], 4.6), layout="constrained")
    for axis, p, y, span in zip(
        figure.subplots(1, predicted.shape[1], squeeze=False)[0], predicted.T, true.T, labels.axes
    ):
        axis.plot([span[0], span[-1]], [span[0], span[-1]], color=_TRUE, linewidth=1)
        axis.scatter(y, p, s=7, alpha=0.5, color=_PREDICTED, linewidths=0)
        axis.set(
            xlabel=f"true {labels.unit}",
            ylabel=f"predicted {labels.unit}",
            title=f"MAE {np.abs(p - y).mean():.2f} {labels.unit}",
        )
    return _save(figure, path)


def learning_curves(path: Path, metrics_csv: Path) -> Path | None:
    """Training loss and validation KL over epochs, from Lightning's ``metrics.csv``; None where it has neither."""
    with metrics_csv.open() as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    for name, label in (("train_loss", "training loss"), ("val_kl", "validation KL")):
        points = [(float(row["epoch"]), float(row[name])) for row in rows if row.get(name)]
        if points:
            axis.plot(*zip(*points), marker="." if len(points) < 40 else None, label=label)
    if not axis.lines:
        return None
    axis.set(xlabel="epoch", title="learning curves")
    axis.legend()
    return _save(figure, path)


def _draw(axis: Axes, distribution: np.ndarray, labels: LabelSpace, color: str, label: str, filled: bool) -> None:
    if labels.kind == "ordinal":
        x = np.array(labels.axes[0])
        if filled:
            axis.fill_between(x, distribution, color=color, alpha=0.5, linewidth=0, label=label)
        else:
            axis.plot(x, distribution, color=color, label=label)
        axis.set_xlabel(labels.unit, fontsize=8)
        return
    x = np.arange(len(distribution))
    axis.bar(x, distribution, width=0.8 if filled else 0.4, color=color, alpha=0.5 if filled else 0.9, label=label)
    if len(labels) <= 12:
        axis.set_xticks(x, labels.names, rotation=30, fontsize=7)


def _save(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path
