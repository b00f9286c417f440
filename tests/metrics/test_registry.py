"""The register of metrics: names, classes, sets, ordinal labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.metrics import Metric, register
from ldl.metrics.functional import kl
from ldl.metrics.ordinal import (
    OrdinalPredictions,
    line_metrics,
    line_results,
)
from ldl.metrics.registry import AUC, INTERVAL_LEVELS, metrics_for
from ldl.metrics.stage import row_metrics


@pytest.mark.parametrize("wrong", [[math.nan, math.nan]])
def test_of_predictions_that_say_nothing_there_is_no_auc(wrong: list[float]) -> None:
    metric = AUC()
    metric.update(torch.tensor([[0.3, 0.7], [0.6, 0.4], wrong]), torch.eye(2)[torch.tensor([1, 0, 0])])
    assert metric.compute().isnan()


def test_sets_hold_the_true_mass_of_their_labels() -> None:
    labels = LabelSpace.nominal(["a", "b", "c"])
    target = torch.tensor([[0.5, 0.3, 0.2], [0.0, 0.1, 0.9]])
    sets = torch.tensor([[True, True, False], [False, False, True]])[:, None].expand(-1, len(INTERVAL_LEVELS), -1)
    known = {metric.name: metric.function for metric in metrics_for(labels) if metric.of == "set"}
    for level in INTERVAL_LEVELS:
        assert known[f"set_coverage{level}"](sets, target).tolist() == pytest.approx([0.8, 0.9])
        assert known[f"set_size{level}"](sets, target).tolist() == [2, 1]


@pytest.fixture
def no_own_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldl.metrics.registry._registered", {})


@pytest.mark.usefixtures("no_own_metrics")
def test_a_name_is_taken_once() -> None:
    with pytest.raises(LDLError, match="a metric 'kl' already"):
        register(Metric("kl", kl))
    register(Metric("mine", kl))
    with pytest.raises(LDLError, match="a metric 'mine' already"):
        register(Metric("mine", kl))
    register(Metric("mae", kl))
    assert "mae" in {measure.name for measure in metrics_for(LabelSpace.nominal("abc"))}
    with pytest.raises(LDLError, match="a metric 'mae' of these labels"):
        metrics_for(LabelSpace.ordinal([0, 1, 2]))


AGES = LabelSpace.ordinal(range(0, 101), "years")


def rows(count: int, labels: LabelSpace, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, decoded values and true values; some of the latter halfway between labels."""
    rng = np.random.default_rng(seed)
    axis = np.array(labels.axes[0])
    prediction = rng.dirichlet(np.full(len(axis), 0.2), count)
    value = rng.choice(np.concatenate([axis, (axis[1:] + axis[:-1]) / 2]), count)
    return prediction, prediction @ axis, value


def measured_of(*columns: Any) -> dict[str, float]:
    return line_results(OrdinalPredictions(*columns))


def test_tables_leave_out_details() -> None:
    measured = measured_of(*rows(9, AGES), AGES, np.arange(9) * 50)
    shown = ["nll", "crps", "coverage90", "calibration_error", "gm", "balanced_mae", "mae_many", "mae_medium"]
    known = {measure.name: measure for measure in metrics_for(AGES)}
    assert [name for name in measured if not known[name].detail] == [*shown, "mae_few"]
    assert not any(known[name].detail for name in ("kl", "mae", "rmse", "cs5", "canberra"))
    in_unit = {name for name in measured | {"mae": 0, "rmse": 0, "cs5": 0} if known[name].unit}
    assert in_unit == {
        name for name in known if name.startswith(("mae", "rmse", "crps", "gm", "balanced_mae", "bias"))
    }  # fmt: skip
    sizes = {name: known[name].size for name in measured if known[name].size}
    assert sizes["mae_few"] == sizes["gm_few"] == "n_few" and sizes["bias_20_29"] == "n_20_29"
    assert set(sizes.values()) == {name for name in measured if name.startswith("n_")}


def test_only_rows_on_a_line_have_ordinal_measures() -> None:
    target = np.full((4, 4), 0.25)
    nominal = row_metrics({"prediction": target, "target": target}, LabelSpace.nominal("abcd"))
    assert len(nominal) == 10 and nominal["kl"] == 0
    grid, points = LabelSpace.grid([0, 1], [0, 1]), np.zeros((4, 2))
    columns = {"prediction": target, "target": target, "value": points, "predicted_value": points + 1}
    assert row_metrics(columns, grid).keys() - nominal.keys() == {"mae", "rmse", "cs5"}
    line = {measure.name for measure in line_metrics(LabelSpace.ordinal([0, 1]))}
    assert not line & {measure.name for measure in metrics_for(LabelSpace.ordinal([0, 1]), maps=True)}
    half, zero = np.full((2, 3, 3, 2), 0.5), np.zeros((2, 3, 3))
    maps = {"prediction": half, "target": half, "value": zero, "predicted_value": zero + 1}
    assert row_metrics(maps, LabelSpace.ordinal([0, 1])).keys() - nominal.keys() == {"mae", "rmse", "cs5"}


def test_widths_of_intervals_alone_have_the_unit_of_the_labels() -> None:
    intervals = [metric for metric in metrics_for(LabelSpace.ordinal(range(9))) if metric.of == "interval"]
    assert {metric.name for metric in intervals if metric.unit} == {f"interval_width{level}" for level in (50, 80, 90)}
    assert len(intervals) == 6 and all(metric.detail for metric in intervals)
