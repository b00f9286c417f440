"""The chart of the raters of a model: what each of them does differently, how much their votes tell, and agreement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ldl.charts.drawing import PREDICTED, in_unit, new_figure, save, shorten
from ldl.labels import LabelSpace

MOST_NAMES = 60
"""Most raters with their names on the axis; more raters have their ranks."""
MOST_LABELS = 12
"""Most labels with their names above the differences of probability."""
LINE, LEAST_HEIGHT, MOST_HEIGHT = 0.2, 2.8, 9.0
"""Height of a rater, and heights of the panels, in inches."""


def rater_differences(path: Path, table: pd.DataFrame, labels: LabelSpace) -> Path:
    """Draw the raters with training votes, a line each, in the order of their shift or informativeness.

    Args:
        path: The PNG.
        table: The raters; see :func:`ldl.raters.description.tabulate_raters`.
        labels: The label space.
    """
    trained = table[table["votes"] > 0]
    is_shift = "shift" in table
    trained = trained.sort_values("shift" if is_shift else "informativeness", kind="stable")
    height = np.clip(1.6 + LINE * len(trained), LEAST_HEIGHT, MOST_HEIGHT)
    differs_width = 1.0 if is_shift else np.clip(0.12 * len(labels), 1.0, 2.0)
    figure, (first, second, third) = new_figure(
        9.6, float(height), 1, 3, sharey=True, width_ratios=[differs_width, 1.0, 0.6]
    )
    if is_shift:
        first.axvline(0, color="0.35", linewidth=1)
        _draw_intervals(first, trained, "shift")
        first.set_xlabel(in_unit("shift of the expectation", labels))
    else:
        _draw_differences(figure, first, trained, labels)
    _draw_intervals(second, trained, "informativeness")
    second.set_xlim(left=0)
    second.set_xlabel("informativeness (nats)")
    third.scatter(trained["agreement"], np.arange(len(trained)), s=_dot(len(trained)), color="0.35", linewidths=0)
    third.set(xlim=(-0.03, 1.03), xticks=[0, 0.5, 1])
    third.set_xlabel("agreement with others")
    _name_raters(first, trained)
    for axis in (first, second, third) if is_shift else (second, third):
        axis.grid(alpha=0.3)
    level = "" if trained.filter(like="_lower_").isna().all(axis=None) else ", with 90% intervals"
    second.set_title(f"{len(trained):,} raters of the model{level}", fontsize=10)
    return save(figure, path)


def _draw_intervals(axis: Axes, table: pd.DataFrame, name: str) -> None:
    """Draw a quantity of each rater with its interval."""
    line = np.arange(len(table))
    low, high = (table.filter(regex=f"^{name}_{end}_").iloc[:, 0] for end in ("lower", "upper"))
    axis.hlines(line, low, high, color=PREDICTED, alpha=0.4, linewidth=3 if len(table) <= MOST_NAMES else 1)
    axis.scatter(table[name], line, s=_dot(len(table)), color=PREDICTED, linewidths=0, zorder=3)


def _dot(raters: int) -> float:
    """Return the area of a point, smaller for many raters."""
    return 28 if raters <= MOST_NAMES else 8


def _draw_differences(figure: Figure, axis: Axes, table: pd.DataFrame, labels: LabelSpace) -> None:
    """Draw the differences of probability of each rater by label, in colours."""
    differences = table[[f"bias:{label}" for label in labels.names]].to_numpy()
    # A few raters who differ most would leave the others without colour.
    most = max(float(np.quantile(np.abs(differences), 0.99)), 0.01)
    image = axis.imshow(differences, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    bar = figure.colorbar(image, ax=axis, location="top", extend="both", aspect=30, pad=0.02, ticks=MaxNLocator(5))
    bar.set_label("probability minus population", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    if len(labels) <= MOST_LABELS:
        long = max(map(len, labels.names)) > 3
        axis.set_xticks(np.arange(len(labels)), labels.names, rotation=30 if long else 0, fontsize=8)
    axis.set_xlabel("label")


def _name_raters(axis: Axes, table: pd.DataFrame) -> None:
    """Write the names of the raters beside their lines, or their ranks if they are many."""
    axis.set_ylim(-0.7, len(table) - 0.3)
    if len(table) <= MOST_NAMES:
        axis.set_yticks(np.arange(len(table)), [shorten(name) for name in table["rater"]], fontsize=8)
    else:
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylabel("raters in order")
