"""The chart of a model among the annotators of its test set: rater equivalence, or survey equivalence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.ticker import MaxNLocator

from ldl.annotations.mixture import combiner_in_words
from ldl.charts.drawing import PREDICTED, new_figure, save

RATERS = "0.35"
"""Grey of the curve of raters alone."""

MOST_MARKED = 12
"""Most raters with a mark each on a curve."""


def rater_equivalence(path: Path, raters: dict[str, Any], title: str = "") -> Path:
    """Draw the expected NLL of a vote that others predict over their number, and the model's place on that curve.

    Args:
        path: The PNG.
        raters: ``power`` (K + 1,) and ``items``, and if known ``labels`` and ``components`` of the combiner. With a
            model also ``nll``, ``worth``, ``low``, ``high``, and
            ``with_model`` (K + 1,) or None; see :func:`ldl.reports.votes.compare_with_raters`.
        title: First line of the title.
    """
    most = len(raters["power"]) - 1
    about = [title] if title else []
    about.append(f"{raters['items']:,} items with more than {most} votes")
    if "labels" in raters:
        about[-1] += f" for {raters['labels']}"
    if "components" in raters:
        about.append(f"votes combined by {combiner_in_words(raters['components'])} (survey equivalence)")
    marker = "o" if most <= MOST_MARKED else None
    figure, axis = new_figure(6.4, 4.4)
    axis.plot(raters["power"], marker=marker, markersize=4, color=RATERS, label="votes of k raters")
    if raters.get("with_model") is not None:
        label = "model and votes of k raters"
        axis.plot(raters["with_model"], marker=marker, markersize=4, color=PREDICTED, label=label)
    if "nll" in raters:
        axis.axhline(raters["nll"], color=PREDICTED, linestyle="--", linewidth=1, label="model alone")
        low, high = (most if raters[name] is None else raters[name] for name in ("low", "high"))
        label = f"worth of the model, {raters['level']:.0%} interval"
        axis.axvspan(low, high, color=PREDICTED, alpha=0.12, linewidth=0, label=label)
        if raters["worth"] is not None:
            axis.plot([raters["worth"]], [raters["nll"]], "D", color=PREDICTED, markersize=7, zorder=3)
    axis.set(
        xlabel="raters k, other than the one whose vote is predicted",
        ylabel="expected NLL of one vote (nats)",
        title="\n".join(about),
    )
    axis.title.set_fontsize(10)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.margins(x=0.03)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    return save(figure, path)
