"""Errors of decoded values over all test instances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from ldl.charts.drawing import PREDICTED, TRUE, in_unit, new_figure, save, spread
from ldl.labels import LabelSpace
from ldl.metrics.groups import band_groups, mean

MOST_DOTS = 20_000
"""Instances that are dots of a chart; of more they are drawn evenly spaced."""


def values(path: Path, predicted: np.ndarray, true: np.ndarray, labels: LabelSpace) -> Path:
    """Predicted against true values, (n,) each; on a grid (n, 2), one panel an axis."""
    predicted, true = predicted.reshape(len(predicted), -1), true.reshape(len(true), -1)
    figure, (axes,) = new_figure(5 * predicted.shape[1], 4.6, 1, predicted.shape[1], squeeze=False)
    names = labels.axis_names or [""] * predicted.shape[1]
    for axis, p, y, span, name in zip(axes, predicted.T, true.T, labels.axes, names):
        axis.plot([span[0], span[-1]], [span[0], span[-1]], color=TRUE, linewidth=1)
        shown = spread(len(y), MOST_DOTS) if len(y) > MOST_DOTS else slice(None)
        axis.scatter(y[shown], p[shown], s=7, alpha=0.5, color=PREDICTED, linewidths=0)
        axis.set(
            xlabel=in_unit(f"true {name or 'value'}", labels),
            ylabel=in_unit(f"predicted {name or 'value'}", labels),
            title=f"{name} MAE {np.abs(p - y).mean():.3g} {labels.unit} of {len(y):,} instances".strip(),
        )
    return save(figure, path)


def cumulative_score(path: Path, predicted: np.ndarray, true: np.ndarray, labels: LabelSpace) -> Path:
    """Share of absolute errors up to every tolerance from 0 to 10 units, from values (n,) each.

    Where labels span less than 20 units, or more than 400, to a twentieth of their span.
    """
    error = np.sort(np.abs(np.asarray(predicted, np.float64) - true))
    span = labels.axes[0][-1] - labels.axes[0][0]
    most = 10.0 if 20 <= span <= 400 else span / 20 or 1.0
    tolerances = np.linspace(0, most, 101)
    share = np.searchsorted(error, tolerances, side="right") / len(error)
    figure, axis = new_figure(5.4, 4)
    axis.plot(tolerances, share, color=PREDICTED)
    axis.scatter(tolerances[::10], share[::10], color=PREDICTED, s=14)
    half = f"CS({most / 2:.3g}) {share[50]:.3f}"
    axis.annotate(half, (most / 2, share[50]), (8, -14), textcoords="offset points")
    axis.set(
        xlabel=in_unit("tolerance", labels),
        ylabel="share of instances within it",
        title=f"cumulative score of {len(error):,} instances",
        xlim=(-0.02 * most, 1.02 * most),
        ylim=(0, 1.02),
    )
    axis.grid(alpha=0.3)
    return save(figure, path)


def bands(path: Path, predicted: np.ndarray, true: np.ndarray, labels: LabelSpace) -> Path | None:
    """MAE, bias and number of instances for every ten units of the true value; None where there are no such bands.

    Values are (n,) each, and those of ordinal labels.
    """
    error = np.asarray(predicted, np.float64) - true
    groups = [(name, error[members]) for name, members in band_groups(np.asarray(true), labels) if members.any()]
    if not groups:
        return None
    x, names = np.arange(len(groups)), [name.replace("_", "\u2013") for name, _ in groups]
    width = max(5.0, 1.6 + 0.62 * len(groups))
    figure, (top, middle, bottom) = new_figure(width, 5.6, 3, 1, sharex=True, height_ratios=[3, 2, 1.4])
    top.bar(x, [mean(np.abs(part)) for _, part in groups], color=PREDICTED)
    middle.bar(x, [mean(part) for _, part in groups], color="tab:orange")
    middle.axhline(0, color="0.3", linewidth=0.8)
    bottom.bar(x, [len(part) for _, part in groups], color=TRUE)
    bottom.bar_label(bottom.containers[0], [f"{len(part):,}" for _, part in groups], fontsize=7, padding=1)
    bottom.margins(y=0.35)
    bottom.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    top.bar_label(top.containers[0], fmt="%.3g", fontsize=7, padding=1)
    top.margins(y=0.12)
    top.set(ylabel=in_unit("MAE", labels), title="errors by true value")
    middle.set_ylabel(in_unit("bias", labels))
    bottom.set_ylabel("instances")
    bottom.set_xticks(x, names, rotation=45 if len(groups) > 6 else 0)
    bottom.set_xlabel(in_unit("true value", labels))
    return save(figure, path)
