"""Edges: precision against recall."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ldl.charts.drawing import new_figure, save
from ldl.edges.benchmark.evaluation import Evaluation
from ldl.edges.benchmark.scores import Optimum, curve, optimum, scores


def precision_recall(path: Path, evaluations: Mapping[str, Evaluation], human: Optimum | None = None) -> Path:
    """Precision over recall of detectors, by name, with lines of equal F-measure and the annotators' agreement."""
    figure, axis = new_figure(6, 6)
    for f in np.arange(1, 10) / 10:
        recall = np.linspace(f / (2 - f), 1, 100)
        axis.plot(recall, f * recall / (2 * recall - f), color="0.85", linewidth=0.8)
        axis.text(0.985, f / (2 - f), f"F {f:g}", color="0.6", fontsize=7, ha="right", va="bottom")
    for name, evaluation in evaluations.items():
        whole = curve(evaluation.counts)
        best = optimum(evaluation.thresholds, whole)
        figures = scores(evaluation.thresholds, evaluation.counts)
        # Where nothing is detected there is no precision.
        there = evaluation.counts.detected.sum(0) > 0
        label = f"{name}: ODS {figures['ods']:.3f}, OIS {figures['ois']:.3f}, AP {figures['ap']:.3f}"
        line = axis.plot(whole.recall[there], whole.precision[there], label=label)[0]
        axis.plot(best.recall, best.precision, "o", color=line.get_color())
    if human is not None:
        label = f"annotators against each other: F {human.f:.3f}"
        axis.plot(human.recall, human.precision, "D", color="tab:green", label=label)
    axis.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal", title="edges")
    axis.legend(loc="lower left", fontsize=8)
    return save(figure, path)
