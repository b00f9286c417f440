"""Charts of all test rows, of the folds of a cross-validation, and of training."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.ticker import MaxNLocator
from sklearn.metrics import auc, roc_curve

from ldl.charts.drawing import (
    PREDICTED,
    TRUE,
    in_unit,
    legend_name,
    new_figure,
    new_sheet,
    save,
    shorten,
    spread,
    warn_on_error,
)
from ldl.charts.instances import distributions, faces
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.methods.conformal.scores import line_intervals, line_scores
from ldl.metrics.classes import confusion_matrix
from ldl.metrics.functional import kl
from ldl.metrics.ordinal import band_groups, calibration_error, coverage, mean, pit, pit_share, reliability

PANELS = 9
"""Instances that are drawn one by one."""

ENOUGH = 30
"""Fewest instances for charts of shares; with fewer they show only chance."""

MOST_LEAVES = 512
"""Leaves whose rows a chart has the height for; more rows are thinner."""

MOST_COUNTED, MOST_NAMED = 12, 40
"""Most labels of a confusion matrix with a number in each cell, and with the names of the labels."""

LEAST_FOLDS, MOST_METRICS = 3, 8
"""Fewest folds that get a box, and most metrics in one chart."""


def overview(
    folder: Path,
    rows: dict[str, np.ndarray],
    labels: LabelSpace,
    fetch: Callable[[np.ndarray], np.ndarray | None] | None = None,
    names: list[str] | None = None,
    conformal: Conformal | None = None,
) -> dict[str, Path]:
    """Write every chart that the rows allow; a chart that fails is left out with a warning.

    Args:
        folder: Folder of the PNGs.
        rows: ``index`` (n,) and ``prediction`` (n, C), and if known ``target``, ``value`` and ``predicted_value``.
        labels: The label space.
        fetch: Returns the images, (k, H, W, 3) uint8, of instances (k,), or None if they are no images.
        names: Name of every instance of the data set, or None for numbers.
        conformal: Calibration of the intervals, or None.

    Returns:
        The paths by the names of the charts.
    """
    drawn: dict[str, Path] = {}

    def draw(name: str, chart: Callable[..., Path | None], *arguments: Any) -> None:
        with warn_on_error(f"charts/{name}.png"):
            if path := chart(folder / f"{name}.png", *arguments):
                drawn[name] = path

    def titles(shown: np.ndarray) -> list[str]:
        return [f"instance {number}" if names is None else Path(names[number]).name for number in rows["index"][shown]]

    if "target" in rows:
        shown = spread(len(rows["index"]), PANELS)
        diverged = kl(*(torch.from_numpy(rows[name][shown]).double() for name in ("prediction", "target")))
        captions = [f"{title}, KL {number:.3f}" for title, number in zip(titles(shown), diverged.tolist())]
        draw("distributions", distributions, rows["prediction"][shown], rows["target"][shown], labels, captions)
        positive = rows["target"][:, -1] > 0.5
        if labels.kind == "nominal" and len(labels) == 2 and 0 < positive.mean() < 1:
            draw("roc", roc, {labels.names[1]: (rows["prediction"][:, 1], positive)})
        if labels.kind == "nominal":
            draw("confusion", confusion, labels, rows["prediction"], rows["target"], rows.get("weight"))
    if "value" in rows and "predicted_value" in rows:
        predicted, true = rows["predicted_value"], rows["value"]
        draw("values", values, predicted, true, labels)
        if labels.kind == "ordinal" and len(true) >= ENOUGH:
            draw("cumulative_score", cumulative_score, predicted, true, labels)
            draw("bands", bands, predicted, true, labels)
            draw("calibration", calibration, rows["prediction"], true, labels)
            if conformal is not None:
                draw("intervals", intervals, rows["prediction"], true, labels, conformal)
        if labels.kind == "ordinal" and fetch is not None:
            # From the lowest to the highest true value, so that the sheet covers the range.
            shown = np.argsort(true, kind="stable")[spread(len(true), PANELS)]

            def sheet(path: Path) -> Path | None:
                if (images := fetch(rows["index"][shown])) is None:
                    return None
                prediction = rows["prediction"][shown]
                return faces(path, images, prediction, true[shown], predicted[shown], labels, titles(shown))

            draw("pictures", sheet)
    return drawn


def values(path: Path, predicted: np.ndarray, true: np.ndarray, labels: LabelSpace) -> Path:
    """Draw predicted against true values, (n,) each; on a grid (n, 2), one panel per axis."""
    predicted, true = predicted.reshape(len(predicted), -1), true.reshape(len(true), -1)
    figure, axes = new_sheet(predicted.shape[1], 2, 5, 4.6)
    names = labels.axis_names or [""] * predicted.shape[1]
    for axis, p, y, span, name in zip(axes, predicted.T, true.T, labels.axes, names):
        axis.plot([span[0], span[-1]], [span[0], span[-1]], color=TRUE, linewidth=1)
        axis.scatter(y, p, s=7, alpha=0.5, color=PREDICTED, linewidths=0)
        axis.set(
            xlabel=in_unit(f"true {name or 'value'}", labels),
            ylabel=in_unit(f"predicted {name or 'value'}", labels),
            title=f"{name} MAE {np.abs(p - y).mean():.3g} {labels.unit} of {len(y):,} instances".strip(),
        )
    return save(figure, path)


def cumulative_score(path: Path, predicted: np.ndarray, true: np.ndarray, labels: LabelSpace) -> Path:
    """Draw the share of absolute errors up to every tolerance from 0 to 10 units, for values (n,) each.

    If labels span less than 20 or more than 400 units, tolerances reach a twentieth of the span.
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
    """Draw MAE, bias and number of instances for every ten units of the true value, for values (n,) each.

    Return None if the labels have no such bands.
    """
    error = np.asarray(predicted, np.float64) - true
    members = band_groups(np.asarray(true), labels)
    parts = {name.replace("_", "\u2013"): error[rows] for name, rows in members.items() if rows.any()}
    if not parts:
        return None
    x, width = np.arange(len(parts)), max(5.0, 1.6 + 0.62 * len(parts))
    figure, (top, middle, bottom) = new_figure(width, 5.6, 3, 1, sharex=True, height_ratios=[3, 2, 1.4])
    top.bar(x, [mean(np.abs(errors)) for errors in parts.values()], color=PREDICTED)
    middle.bar(x, [mean(errors) for errors in parts.values()], color="tab:orange")
    middle.axhline(0, color="0.3", linewidth=0.8)
    bottom.bar(x, [len(errors) for errors in parts.values()], color=TRUE)
    bottom.bar_label(bottom.containers[0], [f"{len(errors):,}" for errors in parts.values()], fontsize=7, padding=1)
    bottom.margins(y=0.35)
    bottom.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    top.bar_label(top.containers[0], fmt="%.3g", fontsize=7, padding=1)
    top.margins(y=0.12)
    top.set(ylabel=in_unit("MAE", labels), title="errors by true value")
    middle.set_ylabel(in_unit("bias", labels))
    bottom.set_ylabel("instances")
    bottom.set_xticks(x, list(parts), rotation=45 if len(parts) > 6 else 0)
    bottom.set_xlabel(in_unit("true value", labels))
    return save(figure, path)


def calibration(path: Path, prediction: np.ndarray, value: np.ndarray, labels: LabelSpace) -> Path:
    """Draw the reliability curve and the probability integral transform of ordinal labels, from (n, C) and (n,).

    Left: the share of true values at or below every predicted quantile; calibrated predictions give the diagonal.
    Right: how often the true value falls into each tenth of the predicted mass; calibrated predictions give a flat
    histogram, too wide distributions a peak in the middle, too narrow ones peaks at both ends.
    """
    spans = pit(prediction, value, np.array(labels.axes[0]))
    figure, (left, right) = new_figure(9, 4.2, 1, 2)
    levels = np.linspace(0, 1, 41)
    left.plot([0, 1], [0, 1], color=TRUE, linewidth=1, label="calibrated")
    left.plot(levels, reliability(spans, levels), color=PREDICTED, label="predicted")
    left.set(
        xlabel="predicted quantile",
        ylabel="observed share at or below it",
        title=f"calibration error {calibration_error(spans):.3f}",
        aspect="equal",
    )
    left.legend(loc="upper left")
    edges = np.linspace(0, 1, 11)
    # The last edge has all mass, which rounding may lift slightly above 1.
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
    """Draw coverage and width of intervals of every level, uncalibrated and calibrated, of ordinal labels.

    Predictions are (n, C) and true values (n,). A level that needs more calibration rows than there are gives the whole
    range.
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


def roc(path: Path, curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Path:
    """Draw ROC curves: by name, scores (n,) of any scale, and whether each instance is positive (n,)."""
    figure, axis = new_figure(5.4, 5)
    for name, (scores, positive) in curves.items():
        false, true, _ = roc_curve(positive, scores)
        axis.plot(false, true, label=legend_name(f"{name}, area {auc(false, true):.3f}".removeprefix(", ")))
    axis.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":")
    axis.set(
        xlabel="false positive rate", ylabel="true positive rate", title="ROC", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01)
    )
    axis.legend(loc="lower right", fontsize=9)
    return save(figure, path)


def confusion(
    path: Path, labels: LabelSpace, prediction: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
) -> Path:
    """Draw the confusion matrix of nominal labels: colours are shares of the instances of a true label.

    Args:
        path: The PNG.
        labels: The label space.
        prediction: (N, C) distributions.
        target: (N, C) distributions.
        weight: (N,) weights of the instances; None counts each once.
    """
    counted = confusion_matrix(prediction, target, weight)
    share = counted / counted.sum(1, keepdims=True).clip(np.finfo(float).tiny)
    side = 3.2 + 0.3 * min(len(labels), MOST_NAMED)
    figure, axis = new_figure(side + 0.8, side)
    image = axis.imshow(share, vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
    figure.colorbar(image, ax=axis, label="share of the true label", fraction=0.046)
    if len(labels) <= MOST_NAMED:
        names = [shorten(name) for name in labels.names]
        ticks = np.arange(len(labels))
        axis.set_xticks(ticks, names, rotation=90 if max(map(len, names)) > 3 else 0, fontsize=8)
        axis.set_yticks(ticks, names, fontsize=8)
    if len(labels) <= MOST_COUNTED:
        for (row, column), number in np.ndenumerate(counted):
            color = "white" if share[row, column] > 0.5 else "0.2"
            axis.text(
                column, row, f"{number:,.1f}".removesuffix(".0"), ha="center", va="center", fontsize=7, color=color
            )
    correct = np.trace(counted) / counted.sum()
    axis.set(xlabel="most likely label of the prediction", ylabel="most likely label of the target")
    axis.set_title(f"{len(target):,} instances, accuracy {correct:.3f}", fontsize=10)
    return save(figure, path)


def likelihood(path: Path, curve: np.ndarray) -> Path:
    """Draw negative log likelihoods (rounds + 1, 2) before boosting and after each round.

    The columns are of training bags and held-out bags; the latter are NaN if there are none.
    """
    curves = {name: column for name, column in zip(("training", "held out"), curve.T) if not np.isnan(column).all()}
    figure, axis = new_figure(6, 4)
    for name, column in curves.items():
        axis.plot(np.arange(len(column)), column, label=name)
    axis.set(xlabel="stumps", ylabel="negative log likelihood", title="boosting")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(fontsize=9)
    if all((column[~np.isnan(column)] > 0).all() for column in curves.values()):
        axis.set_yscale("log")
    return save(figure, path)


def folds(path: Path, columns: Mapping[str, Sequence[float]]) -> Path | None:
    """Draw a box and points of the results of all folds, per metric; return None with less than three folds.

    Args:
        path: The PNG.
        columns: Results of the folds by metric with its unit. The first eight metrics are drawn. Results that are not
            finite are left out and counted.
    """
    drawn = dict(list(columns.items())[:MOST_METRICS])
    if not drawn or len(next(iter(drawn.values()))) < LEAST_FOLDS:
        return None
    figure, axes = new_sheet(len(drawn), 4, 2.3, 2.7)
    for axis, (name, column) in zip(axes, drawn.items()):
        results = np.array(column, dtype=float)
        good = results[np.isfinite(results)]
        axis.boxplot(good, widths=0.5, showfliers=False, medianprops={"color": "0.2"})
        # Side by side in the order of the folds, to show a trend over them.
        axis.plot(np.linspace(0.82, 1.18, len(results)), results, ".", color=PREDICTED, markersize=5, alpha=0.7)
        gone = f", {len(results) - len(good)} not finite" if len(good) < len(results) else ""
        axis.set_title(name, fontsize=9)
        axis.set_xlabel(f"{len(results)} folds{gone}", fontsize=8)
        axis.set_xticks([])
        axis.tick_params(labelsize=8)
    return save(figure, path)


def leaves(path: Path, leaf_distributions: np.ndarray, labels: LabelSpace, usage: np.ndarray) -> Path:
    """Draw the leaves of one tree, (L, C), and the share of a test batch in each leaf, ``usage`` (L,).

    Leaves are sorted by mean value, or by likeliest label if labels have no order.
    """
    title = f"leaves of the first tree, by {'mean value' if labels.kind == 'ordinal' else 'likeliest label'}"
    order = leaf_order(leaf_distributions, labels)
    leaf_distributions, usage = leaf_distributions[order], usage[order]
    height = 1.5 + 0.09 * min(len(usage), MOST_LEAVES)
    figure, (left, right) = new_figure(8, height, 1, 2, width_ratios=[5, 1], sharey=True)
    image = left.imshow(leaf_distributions, aspect="auto", interpolation="nearest", cmap="viridis")
    ticks = spread(len(labels), 9)
    rotation = 0 if max(map(len, labels.names)) <= 4 else 30
    left.set_xticks(ticks, [labels.names[tick] for tick in ticks], rotation=rotation)
    left.set(xlabel=in_unit("value", labels) if labels.kind == "ordinal" else "label", ylabel="leaf", title=title)
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image, ax=left, label="probability", aspect=40, fraction=0.05)
    right.fill_betweenx(np.arange(len(usage)), usage, step="mid", color="0.5")
    right.set(xlabel="share of a\ntest batch", title="use")
    return save(figure, path)


def leaf_order(leaf_distributions: np.ndarray, labels: LabelSpace) -> np.ndarray:
    """Return the order of leaves (L, C) by mean value, or by likeliest label and its probability."""
    if labels.kind == "ordinal":
        return np.argsort(leaf_distributions @ np.array(labels.axes[0]), kind="stable")
    return np.lexsort((-leaf_distributions.max(1), leaf_distributions.argmax(1)))


def learning_curves(path: Path, metrics_csv: Path) -> Path | None:
    """Draw training loss and validation KL from Lightning's ``metrics.csv``; return None with less than two epochs."""
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
