"""What the charts share: figures and their files, instances to show, a distribution drawn into a panel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ldl.labels import LabelSpace

TRUE, PREDICTED = "0.55", "tab:blue"

MOST_BARS, MOST_POINTS = 100, 2000
"""Bars, and points of curves or circles: of more labels neighbours share one, or the greatest are drawn."""


_caption: ContextVar[str] = ContextVar("caption", default="")


@contextmanager
def captioned(text: str) -> Iterator[None]:
    """Write ``text``, such as head, data and run, above every chart that is saved inside."""
    token = _caption.set(text)
    try:
        yield
    finally:
        _caption.reset(token)


def new_figure(width: float, height: float, *shape: int, **layout: Any) -> tuple[Figure, Any]:
    """A figure, its sides in inches, with its panel; of a ``shape`` (rows, columns) with an array of them."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*shape, **layout)


def save(figure: Figure, path: Path) -> Path:
    """Write ``figure``, with its folder, under the caption where there is one."""
    if _caption.get():
        figure.suptitle(_caption.get(), fontsize=8, color="0.35", x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path


def spread(count: int, most: int) -> np.ndarray:
    """At most ``most`` of the numbers below ``count``, evenly spaced, so that a chart is the same from run to run."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def in_unit(what: str, labels: LabelSpace) -> str:
    """The label of an axis: what it shows, and the unit of the values where they have one."""
    return f"{what} ({labels.unit})" if labels.unit else what


def draw_distribution(
    axis: Axes, distribution: np.ndarray, labels: LabelSpace, color: str, label: str, filled: bool
) -> None:
    """A distribution, (C,), as a curve over ordinal labels, as circles over points of a plane, as bars over others."""
    if labels.kind == "ordinal":
        each = -(-len(distribution) // MOST_POINTS)
        x, distribution = np.array(labels.axes[0])[::each], _pooled(distribution, each).max(1)
        if filled:
            axis.fill_between(x, distribution, color=color, alpha=0.5, linewidth=0, label=label)
        else:
            axis.plot(x, distribution, color=color, label=label)
        axis.set_xlabel(labels.unit if each == 1 else f"{labels.unit} (highest of {each})".lstrip(), fontsize=8)
    elif labels.kind == "grid":
        shown = np.sort(np.argsort(-distribution, kind="stable")[:MOST_POINTS])
        (first, second), distribution = labels.points.numpy()[shown].T, distribution[shown]
        style = (
            {"color": color, "alpha": 0.5, "linewidths": 0} if filled else {"facecolors": "none", "edgecolors": color}
        )
        # Areas are probabilities, to one scale in all panels.
        axis.scatter(second, first, s=700 * distribution, label=label, **style)
        names = labels.axis_names or ("first axis", "second axis")
        axis.set_xlabel(f"{names[1]} {labels.unit}".rstrip(), fontsize=8)
        axis.set_ylabel(f"{names[0]} {labels.unit}".rstrip(), fontsize=8)
        axis.margins(0.15)
    else:
        each = -(-len(distribution) // MOST_BARS)
        distribution = _pooled(distribution, each).sum(1)
        x, alpha = np.arange(len(distribution)), 0.5 if filled else 0.9
        axis.bar(x, distribution, width=0.8 if filled else 0.4, color=color, alpha=alpha, label=label)
        if len(labels) <= 12:
            long = max(map(len, labels.names)) > 3
            axis.set_xticks(x, labels.names, rotation=30 if long else 0, fontsize=7)
        if each > 1:
            axis.set_xlabel(f"{len(labels):,} labels, {each:,} a bar", fontsize=8)


def _pooled(values: np.ndarray, each: int) -> np.ndarray:
    """Rows of ``each`` neighbours, the last one filled up with zeros."""
    return np.pad(values, (0, -len(values) % each)).reshape(-1, each)
