"""Shared parts of the charts: figures and their files, captions, and distributions drawn into a panel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter, MaxNLocator, ScalarFormatter

from ldl.labels import LabelSpace

TRUE, PREDICTED = "0.55", "tab:blue"

MOST_BARS = 100
"""Largest number of bars of nominal labels; more labels are drawn as a curve."""

LONGEST_NAME = 24
"""Most letters of a name on an axis."""

MOST_TICKS = 5
"""Most intervals between the ticks of the vertical axis of small panels."""

DPI = 120
"""Pixels per inch."""

_caption: ContextVar[str] = ContextVar("caption", default="")


@contextmanager
def captioned(text: str) -> Iterator[None]:
    """Write ``text``, such as head, data and run, above every chart that is saved inside."""
    token = _caption.set(text)
    try:
        yield
    finally:
        _caption.reset(token)


@contextmanager
def warn_on_error(chart: str) -> Iterator[None]:
    """Turn an error while drawing ``chart`` into a warning, since the results of the run count more."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        warnings.warn(f"{chart} is left out: {type(error).__name__}: {reason}", stacklevel=3)


def new_figure(width: float, height: float, *shape: int, **layout: Any) -> tuple[Figure, Any]:
    """Return a figure of this size in inches and its panel, or an array of panels of ``shape`` (rows, columns)."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    return figure, figure.subplots(*shape, **layout)


def new_sheet(count: int, columns: int, width: float, height: float, **layout: Any) -> tuple[Figure, np.ndarray]:
    """Return a figure with ``count`` panels in rows of ``columns``; ``width`` and ``height`` are of one panel."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, axes = new_figure(width * columns, height * rows, rows, columns, squeeze=False, **layout)
    for unused in axes.ravel()[count:]:
        unused.set_visible(False)
    return figure, axes.ravel()[:count]


def save(figure: Figure, path: Path) -> Path:
    """Write ``figure`` under the caption, and return its path.

    Names of labels and files are text: ``$``, ``_``, ``^`` and backslashes in them are letters.
    """
    if _caption.get():
        figure.suptitle(_caption.get(), fontsize=8, color="0.35", x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Ticks are made while the figure is drawn.
    with rc_context({"text.usetex": False, "text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ")  # the font lacks letters of names
        powers = {text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in _powers(axis)}
        for axes in figure.axes:  # a stated height, because matplotlib looks for ticks above each panel otherwise
            axes.set_title(axes.get_title(), y=1, fontsize=axes.title.get_fontsize())
        for text in figure.findobj(Text):
            text.set_usetex(False)
            text.set_parse_math(text in powers)
        if path.suffix == ".png":
            FigureCanvasAgg(figure).print_png(path, pil_kwargs={"compress_level": 1})  # ``savefig`` would draw twice
        else:
            figure.savefig(path)
    return path


def _powers(axis: Axis) -> list[Text]:
    """Return the tick labels that matplotlib writes as powers in mathtext."""
    formatter = axis.get_major_formatter()
    in_mathtext = isinstance(formatter, ScalarFormatter) and formatter.get_useMathText()
    if in_mathtext or isinstance(formatter, LogFormatter):
        return [*axis.get_ticklabels(which="both"), axis.get_offset_text()]
    return []


def legend_name(text: str) -> str:
    """Return a name for a legend; matplotlib would leave out a name that begins with ``_``."""
    return f"\u200b{text}" if text.startswith("_") else text


def shorten(name: str) -> str:
    """Return a name for an axis, cut after 24 letters."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def spread(count: int, most: int) -> np.ndarray:
    """Return at most ``most`` evenly spaced numbers below ``count``, the same in every run."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def in_unit(name: str, labels: LabelSpace) -> str:
    """Return the label of an axis with the unit of the values."""
    return f"{name} ({labels.unit})" if labels.unit else name


def draw_distribution(
    axis: Axes, distribution: np.ndarray, labels: LabelSpace, color: str, label: str, filled: bool
) -> None:
    """Draw a distribution, (C,): a curve over ordinal labels, circles over a grid, bars over nominal labels."""
    if labels.kind == "grid":
        first, second = labels.points.numpy().T
        colors = (
            {"color": color, "alpha": 0.5, "linewidths": 0} if filled else {"facecolors": "none", "edgecolors": color}
        )
        # Areas are probabilities, to one scale in all panels.
        axis.scatter(second, first, s=700 * distribution, label=label, **colors)
        names = labels.axis_names or ("first axis", "second axis")
        axis.set_xlabel(f"{names[1]} {labels.unit}".rstrip(), fontsize=8)
        axis.set_ylabel(f"{names[0]} {labels.unit}".rstrip(), fontsize=8)
        axis.margins(0.15)
        return
    x = np.array(labels.axes[0]) if labels.kind == "ordinal" else np.arange(len(labels))
    if labels.kind == "nominal" and len(labels) <= MOST_BARS:
        width, alpha = (0.8, 0.5) if filled else (0.4, 0.9)
        axis.bar(x, distribution, width=width, color=color, alpha=alpha, label=label)
        if len(labels) <= 12:
            long = max(map(len, labels.names)) > 3
            axis.set_xticks(x, labels.names, rotation=30 if long else 0, fontsize=7)
    elif filled:
        axis.fill_between(x, distribution, color=color, alpha=0.5, linewidth=0, label=label)
    else:
        axis.plot(x, distribution, color=color, label=label)
    axis.set_xlabel(labels.unit, fontsize=8)


def set_probability_axis(axis: Axes, labels: LabelSpace, fontsize: float | None = None) -> None:
    """Begin the vertical axis of a distribution at 0 and name it, unless labels are a grid."""
    if labels.kind != "grid":
        axis.set_ylim(bottom=0)
        axis.set_ylabel("probability", fontsize=fontsize)


def draw_picture(axis: Axes, picture: np.ndarray) -> None:
    """Draw an image, (H, W) grey or (H, W, 3), uint8, without axes."""
    axis.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axis.set(xticks=[], yticks=[])  # the ticks of hidden axes are made, too
    axis.set_axis_off()


def share_scale(panels: Sequence[Axes] | np.ndarray, columns: int) -> None:
    """Give drawn panels, in rows of ``columns``, one scale, and write its numbers and names at the outer panels."""
    widths, heights = (np.array([get(panel) for panel in panels]) for get in (Axes.get_xlim, Axes.get_ylim))
    for number, panel in enumerate(panels):
        panel.set(xlim=(widths.min(), widths.max()), ylim=(heights.min(), heights.max()))
        panel.yaxis.set_major_locator(MaxNLocator(MOST_TICKS, steps=[1, 2, 2.5, 5, 10]))
        if number < len(panels) - columns:  # another panel is below
            panel.tick_params(labelbottom=False)
            panel.set_xlabel("")
        if number % columns:
            panel.tick_params(labelleft=False)
            panel.set_ylabel("")
