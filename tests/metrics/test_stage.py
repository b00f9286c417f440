"""Metrics of a stage: means over uneven batches, sums in 16 bits, classes against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes.predictions import NOMINAL, distribution_metrics, rows
from pytorch_lightning.plugins.precision import HalfPrecision
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from ldl.labels import LabelSpace
from ldl.metrics.stage import LossMeans, StageMetrics, row_metrics

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
