"""Metrics against loops written from their definitions, and those of two classes against scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from pytorch_lightning.plugins.precision import HalfPrecision
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from torch import nn

from ldl.labels import LabelSpace
from ldl.metrics import DISTRIBUTION_METRICS, metrics_for
from ldl.metrics.registry import AUC, INTERVAL_LEVELS
from ldl.metrics.stage import LossMeans, StageMetrics, row_metrics

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


def test_a_network_of_16_bits_does_not_round_the_sums() -> None:
    target, prediction = (torch.tensor(part) for part in rows(60, 5))
    plain, stage, losses = distribution_metrics(), StageMetrics(NOMINAL), LossMeans()
    found = stage.to(torch.bfloat16).means["distribution"]
    with HalfPrecision("bf16-true").forward_context():
        for row in range(60):
            found.update(prediction[row : row + 1], target[row : row + 1])
            losses.update({"loss": torch.tensor(row)}, 1)
    plain.update(prediction, target)
    for name, value in plain.compute().items():
        torch.testing.assert_close(found.compute()[name], value)
    assert losses.to(torch.bfloat16).compute()["loss"] == 29.5


TWO = LabelSpace.nominal(["negative", "positive"])


def test_figures_are_those_of_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    # Few values, so that there are ties.
    p = torch.randint(1, 10, (70,), generator=generator) / 10
    label = torch.randint(2, (70,), generator=generator)
    prediction, target = torch.stack([1 - p, p], 1), torch.eye(2)[label]
    metrics = StageMetrics(TWO).means["class"]
    for part in (slice(0, 31), slice(31, 31), slice(31, 70)):
        metrics.update(prediction[part], target[part])
    expected = {
        "accuracy": accuracy_score(label, p > 0.5),
        "auc": roc_auc_score(label, p),
        "nll": log_loss(label, p.double()),
    }
    for name, value in metrics.compute().items():
        assert float(value) == pytest.approx(expected[name], abs=1e-6)
    rows = row_metrics({"prediction": prediction.numpy(), "target": target.numpy()}, TWO)
    assert {name: rows[name] for name in expected} == pytest.approx(expected, abs=1e-6)


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
