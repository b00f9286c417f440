"""Charts of edge detection: precision and recall, and the calibration of edge probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ldl.charts.drawing import TRUE, legend_name, new_figure, save
from ldl.edges.benchmark.evaluation import Evaluation, Optimum, curve, optimum, scores
from ldl.edges.benchmark.votes import QUESTIONS, Tally, reliability


def precision_recall(path: Path, evaluations: Mapping[str, Evaluation], human: Optimum | None = None) -> Path:
    """Draw precision over recall of detectors, with lines of equal F-measure and the annotators' agreement.

    Args:
        path: The PNG.
        evaluations: Evaluations by the name of the detector.
        human: Agreement of the annotators with each other, or None.
    """
    figure, axis = new_figure(6, 6)
    for f in np.arange(1, 10) / 10:
        recall = np.linspace(f / (2 - f), 1, 100)
        axis.plot(recall, f * recall / (2 * recall - f), color="0.85", linewidth=0.8)
        axis.text(0.985, f / (2 - f), f"F {f:g}", color="0.6", fontsize=7, ha="right", va="bottom")
    for name, evaluation in evaluations.items():
        whole = curve(evaluation.counts)
        best = optimum(evaluation.thresholds, whole)
        results = scores(evaluation.thresholds, evaluation.counts)
        # Without detections the precision is undefined.
        detects = evaluation.counts.detected.sum(0) > 0
        label = legend_name(name) + f": ODS {results['ods']:.3f}, OIS {results['ois']:.3f}, AP {results['ap']:.3f}"
        line = axis.plot(whole.recall[detects], whole.precision[detects], label=label)[0]
        axis.plot(best.recall, best.precision, "o", color=line.get_color())
    if human is not None:
        label = f"annotators against each other: F {human.f:.3f}"
        axis.plot(human.recall, human.precision, "D", color="tab:green", label=label)
    axis.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal", title="edges")
    axis.legend(loc="lower left", fontsize=8)
    return save(figure, path)


def reliability_diagram(
    path: Path,
    tallies: Mapping[tuple[str, str], Tally],
    ways: Mapping[str, Mapping[tuple[str, str], np.ndarray]],
    bins: int,
) -> Path:
    """Draw the share of votes over the mean probability in bins of equal mass, over all pixels, for every question.

    Args:
        path: The PNG.
        tallies: Pixels and votes by region and question.
        ways: For each estimate by name, the probabilities of the levels by region and question.
        bins: Number of bins.
    """
    figure, axes = new_figure(12, 4.4, 1, len(QUESTIONS))
    for axis, question in zip(axes, QUESTIONS):
        axis.plot([0, 1], [0, 1], color=TRUE, linewidth=1)
        for name, probabilities in ways.items():
            key = "all", question
            gap, mean, _ = reliability(tallies[key], probabilities[key], bins, mass=True)
            axis.plot(mean, mean + gap, "o-", markersize=4, label=name)
        # Most pixels are no edge, so that a linear scale would squeeze them into one point.
        axis.set(xlabel="probability", ylabel="share of votes", title=question, aspect="equal")
        for scale in (axis.set_xscale, axis.set_yscale):
            scale("symlog", linthresh=1e-3)
        axis.set(xlim=(0, 1), ylim=(0, 1))
        axis.legend(loc="upper left")
    return save(figure, path)
