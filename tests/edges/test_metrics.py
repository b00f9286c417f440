"""The metrics of edges: which direction is better, and which one is in one line about a result."""

from __future__ import annotations

import pytest

from ldl.edges.metrics import LOGGED_METRICS
from ldl.labels import LabelSpace
from ldl.metrics import higher_is_better, metrics_for
from ldl.metrics.registry import main_metrics
from ldl.run.console import report_fold


def test_directions() -> None:
    lower = {f"{question}_{score}" for question in ("drawn", "near", "any") for score in ("nll", "brier", "ece")}
    assert {name for name in LOGGED_METRICS if not higher_is_better(name)} == lower
    assert higher_is_better("ods") and higher_is_better("crisp_ac") and higher_is_better("r50")


def test_a_fold_is_told_by_its_main_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main_metrics()[:3] == ["kl", "mae", "accuracy"] and "ods" in main_metrics()
    metrics = {"ods": 0.75, "kl": 0.5, "ois": 0.8}
    report_fold({"folds": [{"fold": 0, "metrics": metrics}], "fit_seconds": 2.0})
    assert capsys.readouterr().out == "fold 0: kl 0.5000, ods 0.7500, 2.0 s\n"


def test_steps_do_not_compute_them() -> None:
    labels = LabelSpace.nominal(["no edge", "edge"])
    assert not {metric.name for metric in metrics_for(labels, maps=True)} & set(LOGGED_METRICS)
