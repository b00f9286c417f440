"""Two labels: how well one is told from the other, and what boosting did round by round."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.metrics import auc, roc_curve

from ldl.charts.drawing import new_figure, save


def roc(path: Path, curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Path:
    """ROC curves: by the name of each, scores (n,), of any scale, and whether the instance is positive (n,)."""
    figure, axis = new_figure(5.4, 5)
    for name, (scores, positive) in curves.items():
        false, true, _ = roc_curve(positive, scores)
        axis.plot(false, true, label=f"{name}, area {auc(false, true):.3f}".removeprefix(", "))
    axis.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":")
    axis.set(
        xlabel="false positive rate", ylabel="true positive rate", title="ROC", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01)
    )
    axis.legend(loc="lower right", fontsize=9)
    return save(figure, path)


def likelihood(path: Path, curve: np.ndarray) -> Path:
    """Negative log likelihood (rounds + 1, 2) before the first round of boosting and after each.

    Of the training bags, and of those held out, whose column is NaN where there are none.
    """
    curves = {name: column for name, column in zip(("training", "held out"), curve.T) if not np.isnan(column).all()}
    figure, axis = _rounds(curves, "negative log likelihood")
    axis.set_title("boosting")
    if all((column[~np.isnan(column)] > 0).all() for column in curves.values()):
        axis.set_yscale("log")
    return save(figure, path)


def error_curves(path: Path, curves: Mapping[str, np.ndarray], title: str) -> Path:
    """Equal error rates (rounds,) against the number of stumps, from one on, by the name of each curve."""
    figure, axis = _rounds({name: np.append(np.nan, curve) for name, curve in curves.items()}, "equal error rate")
    axis.set(title=title, ylim=(0, None))
    return save(figure, path)


def _rounds(curves: Mapping[str, np.ndarray], label: str) -> tuple[Figure, Axes]:
    figure, axis = new_figure(6, 4)
    for name, curve in curves.items():
        axis.plot(np.arange(len(curve)), curve, label=name)
    axis.set(xlabel="stumps", ylabel=label)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(fontsize=9)
    return figure, axis
