"""What training came to: its curves, and the leaves of a forest."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from ldl.charts.drawing import in_unit, new_figure, save, spread
from ldl.labels import LabelSpace

MOST_LEAVES = 512
"""A taller chart is not read; one of 2^15 leaves would be 350,000 pixels high."""


def leaves(path: Path, leaf_distributions: np.ndarray, labels: LabelSpace, usage: np.ndarray) -> Path:
    """The leaves of one tree, (L, C), a row a leaf; ``usage`` (L,) is the share of a test batch that each holds.

    They are sorted: by their mean value, or by their likeliest label where labels have no order. Of more than
    ``MOST_LEAVES`` those that hold most are drawn, and the title says so.
    """
    title = f"leaves of the first tree, by {'mean value' if labels.kind == 'ordinal' else 'likeliest label'}"
    if len(usage) > MOST_LEAVES:
        shown = np.sort(np.argsort(-usage, kind="stable")[:MOST_LEAVES])
        title += f":\nthe {MOST_LEAVES} that hold most of {len(usage):,}"
        leaf_distributions, usage = leaf_distributions[shown], usage[shown]
    order = _order(leaf_distributions, labels)
    leaf_distributions, usage = leaf_distributions[order], usage[order]
    height = 1.5 + 0.09 * len(leaf_distributions)
    figure, (left, right) = new_figure(8, height, 1, 2, width_ratios=[5, 1], sharey=True)
    image = left.imshow(leaf_distributions, aspect="auto", interpolation="nearest", cmap="viridis")
    ticks = spread(len(labels), 9)
    left.set_xticks(
        ticks, [labels.names[tick] for tick in ticks], rotation=0 if max(map(len, labels.names)) <= 4 else 30
    )
    left.set(xlabel=in_unit("value", labels) if labels.kind == "ordinal" else "label", ylabel="leaf", title=title)
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image, ax=left, label="probability", aspect=40, fraction=0.05)
    right.barh(np.arange(len(usage)), usage, color="0.5")
    right.set(xlabel="share of a\ntest batch", title="use")
    return save(figure, path)


def _order(rows: np.ndarray, labels: LabelSpace) -> np.ndarray:
    if labels.kind == "ordinal":
        return np.argsort(rows @ np.array(labels.axes[0]), kind="stable")
    return np.lexsort((-rows.max(1), rows.argmax(1)))


def learning_curves(path: Path, metrics_csv: Path) -> Path | None:
    """Training loss and validation KL over epochs, from Lightning's ``metrics.csv``; None of less than two epochs."""
    with metrics_csv.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    figure, axis = new_figure(6, 4)
    for name, label in (("train_loss", "training loss"), ("val_kl", "validation KL")):
        points = [(float(row["epoch"]), float(row[name])) for row in rows if row.get(name)]
        if len(points) > 1:
            axis.plot(*zip(*points), marker="." if len(points) < 40 else None, label=label)
    if not axis.lines:
        return None
    axis.set(xlabel="epoch", ylabel="loss, KL divergence", title="learning curves")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.grid(alpha=0.3)
    axis.legend()
    return save(figure, path)
