"""The measures against loops written from their definitions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
import torch
from pytorch_lightning.plugins.precision import HalfPrecision
from torch import nn

from ldl.labels import LabelSpace
from ldl.metrics import DISTRIBUTION_METRICS, measures
from ldl.metrics.losses import LossMeans
from ldl.metrics.measure import Mean
from ldl.metrics.stage import StageMetrics
from ldl.metrics.value import RMSE, absolute, within

Row = Sequence[float]


def _clark(d: Row, g: Row) -> float:
    return math.sqrt(sum(((a - b) / (a + b)) ** 2 for a, b in zip(d, g) if a + b > 0))


def _cosine(d: Row, g: Row) -> float:
    lengths = math.sqrt(sum(a * a for a in d)) * math.sqrt(sum(b * b for b in g))
    return sum(a * b for a, b in zip(d, g)) / lengths


REFERENCES: dict[str, Callable[[Row, Row], float]] = {
    "kl": lambda d, g: sum(a * math.log(a / max(b, 1e-12)) for a, b in zip(d, g) if a > 0),
    "chebyshev": lambda d, g: max(abs(a - b) for a, b in zip(d, g)),
    "clark": _clark,
    "canberra": lambda d, g: sum(abs(a - b) / (a + b) for a, b in zip(d, g) if a + b > 0),
    "cosine": _cosine,
    "intersection": lambda d, g: sum(min(a, b) for a, b in zip(d, g)),
    "euclidean": lambda d, g: math.sqrt(sum((a - b) ** 2 for a, b in zip(d, g))),
    "sorensen": lambda d, g: sum(abs(a - b) for a, b in zip(d, g)) / sum(a + b for a, b in zip(d, g)),
    "squared_chi2": lambda d, g: sum((a - b) ** 2 / (a + b) for a, b in zip(d, g) if a + b > 0),
    "fidelity": lambda d, g: sum(math.sqrt(a * b) for a, b in zip(d, g)),
}

HARD_ROWS = [
    ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0]),  # equal, with 0/0 twice
    ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),  # disjoint, with 0/0 once
    ([0.5, 0.5, 0.0], [0.0, 0.25, 0.75]),  # mass where the prediction has none
    ([1 / 3, 1 / 3, 1 / 3], [1e-30, 1e-14, 1.0]),  # below the floor of KL
]


NOMINAL = LabelSpace.nominal("abc")


def distribution_metrics() -> nn.Module:
    """The ten as a run has them."""
    return StageMetrics(NOMINAL).means["distribution"]


def rows(count: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    target, prediction = rng.dirichlet(np.full(labels, 0.3), count), rng.dirichlet(np.full(labels, 0.5), count)
    target[0, 1:] = 0
    return target / target.sum(1, keepdims=True), prediction


@pytest.mark.parametrize("name", REFERENCES)
def test_measure_equals_its_definition(name: str) -> None:
    metric = distribution_metrics()[name]
    assert callable(metric)
    for d, g in HARD_ROWS:
        metric.reset()
        metric.update(torch.tensor([g], dtype=torch.float64), torch.tensor([d], dtype=torch.float64))
        assert metric.compute().item() == pytest.approx(REFERENCES[name](d, g), rel=1e-12, abs=1e-12)
    target, prediction = rows(50, 7)
    metric.reset()
    metric.update(torch.from_numpy(prediction), torch.from_numpy(target))
    expected = float(np.mean([REFERENCES[name](d, g) for d, g in zip(target, prediction)]))
    assert metric.compute().item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_measures_of_16_bits_are_those_of_the_same_numbers_in_64(dtype: torch.dtype) -> None:
    tiny = ([1.0, 0.0, 0.0], [1.0, 1e-6, 1e-7])  # float16 has no smaller ones
    target, prediction = (torch.tensor(part, dtype=dtype) for part in zip(*HARD_ROWS, tiny))
    for measure in DISTRIBUTION_METRICS.values():
        expected = measure.function(prediction.double(), target.double())
        found = measure.function(prediction, target).double()
        torch.testing.assert_close(found, expected, rtol=0.01, atol=0.01, msg=measure.name)


def test_there_are_ten_measures_and_they_know_which_way_is_better() -> None:
    metrics = StageMetrics(NOMINAL, "test_").means["distribution"]
    assert set(metrics) == {f"test_{name}" for name in REFERENCES}
    better = {name for name, measure in DISTRIBUTION_METRICS.items() if measure.higher_is_better}
    assert better == {"cosine", "intersection", "fidelity"}


def test_uneven_batches_give_what_all_rows_give_at_once() -> None:
    target, prediction = (torch.tensor(part, dtype=torch.float32) for part in rows(60, 5))
    together, apart = distribution_metrics(), distribution_metrics()
    together.update(prediction, target)
    for part in (slice(0, 1), slice(1, 1), slice(1, 38), slice(38, 60)):
        apart.update(prediction[part], target[part])
    for name, value in together.compute().items():
        torch.testing.assert_close(apart.compute()[name], value, rtol=1e-12, atol=0)


def test_maps_count_every_pixel() -> None:
    target, prediction = (torch.tensor(part).reshape(3, 4, 5, 5) for part in rows(60, 5))
    whole, flat = distribution_metrics(), distribution_metrics()
    whole.update(prediction, target)
    flat.update(prediction.flatten(0, 2), target.flatten(0, 2))
    for name, value in flat.compute().items():
        torch.testing.assert_close(whole.compute()[name], value)


GRIDS = [LabelSpace.grid([0, 1], [0, 1]), LabelSpace.grid([0, 1], [0, 1], axis_names=("pitch", "yaw"))]


@pytest.mark.parametrize("labels", [LabelSpace.ordinal([0, 1]), *GRIDS], ids=["line", "grid", "named"])
def test_value_metrics_over_uneven_batches(labels: LabelSpace) -> None:
    rng = np.random.default_rng(1)
    shape = (50,) if labels.ndim == 1 else (50, 2)
    predicted, true = rng.uniform(0, 20, shape), rng.uniform(0, 20, shape)
    metrics = StageMetrics(labels, "val_").means["value"]
    for part in (slice(0, 3), slice(3, 50)):
        metrics.update(torch.from_numpy(predicted[part]), torch.from_numpy(true[part]))
    error = np.abs(predicted - true)
    expected = {"val_mae": error.mean(), "val_rmse": np.sqrt((error**2).mean()), "val_cs5": (error <= 5).mean()}
    expected |= {f"val_mae_{name}": error[:, axis].mean() for axis, name in enumerate(labels.axis_names)}
    assert {name: value.item() for name, value in metrics.compute().items()} == pytest.approx(expected, rel=1e-12)


def test_cumulative_score_counts_the_tolerance_itself() -> None:
    score = Mean(partial(within, 5.0))
    score.update(torch.tensor([5.0, 5.01, -5.0, 0.0]), torch.zeros(4))
    assert score.compute().item() == 0.75


def test_nominal_labels_have_no_value_metrics() -> None:
    assert not {measure.name for measure in measures(LabelSpace.nominal("ab"))} & {"mae", "rmse", "cs5"}


def test_a_network_of_16_bits_does_not_round_the_sums() -> None:
    target, prediction = (torch.tensor(part) for part in rows(300, 5))
    plain, stage, losses = distribution_metrics(), StageMetrics(NOMINAL), LossMeans()
    found = stage.to(torch.bfloat16).means["distribution"]
    with HalfPrecision("bf16-true").forward_context():
        for row in range(300):
            found.update(prediction[row : row + 1], target[row : row + 1])
            losses.update({"loss": torch.tensor(row)}, 1)
    plain.update(prediction, target)
    for name, value in plain.compute().items():
        torch.testing.assert_close(found.compute()[name], value)
    assert losses.to(torch.bfloat16).compute()["loss"] == 149.5


def test_nan_before_any_row() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torchmetrics warns of compute before update
        for metric in [*distribution_metrics().values(), Mean(absolute), RMSE(), Mean(partial(within, 5.0))]:
            assert math.isnan(metric.compute().item())
