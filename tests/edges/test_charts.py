"""Charts of edges: the curve where there are detections, the optimum of annotators, and shares of votes by bins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ldl.edges.benchmark.evaluation import Evaluation, Optimum
from ldl.edges.benchmark.matching import Counts
from ldl.edges.benchmark.votes import QUESTIONS, Tally
from ldl.edges.charts import precision_recall, reliability_diagram


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    figures: list[Figure] = []
    monkeypatch.setattr(FigureCanvasAgg, "print_png", lambda canvas, *_, **__: figures.append(canvas.figure))
    return figures


def test_precision_is_drawn_where_there_are_detections(drawn: list[Any], tmp_path: Path) -> None:
    recalled, correct, detected = ([[6, 3, 0]], [[6, 3, 0]], [[8, 3, 0]])
    counts = Counts(*map(np.array, (recalled, [[12, 12, 12]], correct, detected)))
    path = precision_recall(
        tmp_path / "pr.png",
        {"A_b": Evaluation(["1"], np.array([0.2, 0.5, 0.8]), counts)},
        Optimum(0.5, 0.9, 0.7, 0.7875),
    )
    assert path == tmp_path / "pr.png"
    (axis,) = drawn[0].axes
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts[0].startswith("A_b: ODS 0.600, OIS 0.600") and texts[1].endswith("each other: F 0.787")
    curve = next(line for line in axis.lines if line.get_label() == texts[0])
    np.testing.assert_allclose(curve.get_xydata(), [[0.5, 0.75], [0.25, 1.0]])


def test_reliability_has_an_axis_a_question(drawn: list[Any], tmp_path: Path) -> None:
    tally = Tally(np.array([50.0, 50.0]), np.array([5.0, 40.0]))
    keys = [("all", question) for question in QUESTIONS]
    probability = np.array([0.2, 0.7])
    reliability_diagram(tmp_path / "r.png", dict.fromkeys(keys, tally), {"raw": dict.fromkeys(keys, probability)}, 2)
    assert [axis.get_title() for axis in drawn[0].axes] == list(QUESTIONS)
    for axis in drawn[0].axes:
        np.testing.assert_allclose(axis.lines[1].get_xydata(), [[0.2, 0.1], [0.7, 0.8]])
