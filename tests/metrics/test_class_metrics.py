"""Accuracy, AUC and NLL of two labels against scikit-learn, and where they have no finite value."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from ldl.labels import LabelSpace
from ldl.metrics import measures
from ldl.metrics.classes import AUC, CLASS_MEASURES, cross_entropy
from ldl.metrics.measure import Mean
from ldl.metrics.rows import row_metrics
from ldl.metrics.stage import StageMetrics

LABELS = LabelSpace.nominal(["negative", "positive"])


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_scikit_learn(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Few values, so that there are ties.
    p = torch.randint(1, 10, (70,), generator=generator) / 10
    label = torch.randint(2, (70,), generator=generator)
    prediction, target = torch.stack([1 - p, p], 1), torch.eye(2)[label]
    metrics = StageMetrics(LABELS).means["class"]
    for part in (slice(0, 31), slice(31, 31), slice(31, 70)):
        metrics.update(prediction[part], target[part])
    expected = {
        "accuracy": accuracy_score(label, p > 0.5),
        "auc": roc_auc_score(label, p),
        "nll": log_loss(label, p.double()),
    }
    for name, value in metrics.compute().items():
        assert float(value) == pytest.approx(expected[name], abs=1e-6)
    rows = row_metrics({"prediction": prediction.numpy(), "target": target.numpy()}, LABELS)
    assert {name: rows[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_a_sure_error_is_infinite() -> None:
    metric = Mean(cross_entropy)
    metric.update(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    assert metric.compute() == math.inf
    metric = Mean(cross_entropy)
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
    assert metric.compute() == 0


def test_sure_and_all_but_sure_are_told_apart() -> None:
    metric = AUC()
    metric.update(
        torch.tensor([[1.0, 1e-30], [1.0, 1e-20], [1e-20, 1.0], [0.0, 1.0], [1.0, 0.0]]),
        torch.eye(2)[torch.tensor([0, 1, 1, 1, 0])],
    )
    assert metric.compute() == 1


def test_one_class_has_no_auc() -> None:
    metric = AUC()
    metric.update(torch.tensor([[0.3, 0.7]]), torch.tensor([[0.0, 1.0]]))
    assert metric.compute().isnan()


@pytest.mark.parametrize("wrong", [[math.nan, math.nan], [0.0, 0.0]])
def test_of_predictions_that_say_nothing_there_is_no_auc(wrong: list[float]) -> None:
    metric = AUC()
    metric.update(torch.tensor([[0.3, 0.7], [0.6, 0.4], wrong]), torch.eye(2)[torch.tensor([1, 0, 0])])
    assert metric.compute().isnan()


@pytest.mark.parametrize("labels", [LabelSpace.nominal(list("abc")), LabelSpace.ordinal([0, 1])])
def test_other_labels_have_none(labels: LabelSpace) -> None:
    assert not set(CLASS_MEASURES) & set(measures(labels))
