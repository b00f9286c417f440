"""Edges: how often annotators draw where a map says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ldl.charts.drawing import TRUE, new_figure, save
from ldl.edges.benchmark.proper import reliability
from ldl.edges.benchmark.votes import QUESTIONS, Tally


def reliability_diagram(
    path: Path,
    tallies: Mapping[tuple[str, str], Tally],
    ways: Mapping[str, Mapping[tuple[str, str], np.ndarray]],
    bins: int,
) -> Path:
    """Share of votes over the mean probability in bins of equal mass, on all pixels, of every question.

    Args:
        path: The PNG.
        tallies: Pixels and votes by region and question.
        ways: By name: what the levels stand for, by region and question.
        bins: How many.
    """
    figure, axes = new_figure(12, 4.4, 1, len(QUESTIONS))
    for axis, question in zip(axes, QUESTIONS):
        axis.plot([0, 1], [0, 1], color=TRUE, linewidth=1)
        for name, probabilities in ways.items():
            key = "all", question
            gap, mean, _ = reliability(tallies[key], probabilities[key], bins, mass=True)
            axis.plot(mean, mean + gap, "o-", markersize=4, label=name)
        # Most pixels are no edge: on a linear scale they would be one point.
        axis.set(xlabel="probability", ylabel="share of votes", title=question, aspect="equal")
        for scale in (axis.set_xscale, axis.set_yscale):
            scale("symlog", linthresh=1e-3)
        axis.set(xlim=(0, 1), ylim=(0, 1))
        axis.legend(loc="upper left")
    return save(figure, path)
