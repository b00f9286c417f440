"""Whether predicted distributions mean what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.charts.drawing import PREDICTED, TRUE, new_figure, save
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.methods.conformal.line import line_intervals, line_scores
from ldl.metrics.predictive import calibration_error, coverage, pit, pit_share, reliability

LEVELS = np.linspace(0, 1, 41)


def calibration(path: Path, prediction: np.ndarray, value: np.ndarray, labels: LabelSpace) -> Path:
    """Reliability curve and histogram of the probability integral transform, (n, C) and (n,), of ordinal labels.

    On the left the share of true values at or below every predicted quantile, which is the diagonal where
    predictions are calibrated; on the right how often the true value falls into each tenth of the predicted mass:
    flat where calibrated, a heap in the middle where distributions are too wide, two at the ends where too narrow.
    """
    spans = pit(prediction, value, np.array(labels.axes[0]))
    figure, (left, right) = new_figure(9, 4.2, 1, 2)
    left.plot([0, 1], [0, 1], color=TRUE, linewidth=1, label="calibrated")
    left.plot(LEVELS, reliability(spans, LEVELS), color=PREDICTED, label="predicted")
    left.set(
        xlabel="predicted quantile",
        ylabel="observed share at or below it",
        title=f"calibration error {calibration_error(spans):.3f}",
        aspect="equal",
    )
    left.legend(loc="upper left")
    edges = np.linspace(0, 1, 11)
    # The last edge is that of all mass, which rounding may put a hair above 1.
    shares = np.diff([0.0, *(pit_share(spans, edge).mean() for edge in edges[1:-1]), 1.0])
    right.bar(edges[:-1], shares, width=0.1, align="edge", color=PREDICTED, edgecolor="white")
    right.axhline(0.1, color=TRUE, linewidth=1)
    held = ", ".join(f"{100 * coverage(spans, percent):.0f}" for percent in (50, 80, 90))
    right.set(
        xlabel="predicted mass below the true value",
        ylabel="share of instances",
        title=f"50, 80, 90% intervals hold {held}%",
    )
    return save(figure, path)


def intervals(path: Path, prediction: np.ndarray, value: np.ndarray, labels: LabelSpace, conformal: Conformal) -> Path:
    """How often intervals of every level hold the true value, as predicted and calibrated, and how wide they are.

    Of predictions (n, C) and true values (n,) of ordinal labels. A level that takes more calibration rows than there
    are gives the whole range.
    """
    axis, scores = np.array(labels.axes[0]), conformal.scores[0]
    reached, levels = line_scores(prediction, value, axis), np.arange(1, 20) / 20
    ways = {
        "as predicted": ("0.35", levels),
        "calibrated": (PREDICTED, np.array([scores.threshold(level) for level in levels])),
    }
    figure, (left, right) = new_figure(9, 4.2, 1, 2)
    left.plot([0, 1], [0, 1], color=TRUE, linewidth=1)
    for name, (color, thresholds) in ways.items():
        held = [float((reached <= threshold).mean()) for threshold in thresholds]
        width = np.diff(line_intervals(prediction, axis, thresholds), axis=-1).mean((0, 2))
        at = int(levels.searchsorted(0.9))
        left.plot(levels, held, color=color, label=f"{name}: 90% hold {100 * held[at]:.0f}%")
        right.plot(levels, width, color=color, label=f"{name}: 90% take {width[at]:.3g} {labels.unit}".rstrip())
    left.set(xlabel="level", ylabel="share of true values held", aspect="equal", title="coverage of intervals")
    right.set(xlabel="level", ylabel=f"mean width {labels.unit}".rstrip(), title=f"{len(value):,} test instances")
    for axes in (left, right):
        axes.legend(loc="upper left", fontsize=8)
    return save(figure, path)
