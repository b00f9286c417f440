"""Metrics of distributions against loops written from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from fakes.predictions import distribution_metrics, rows
from scipy.stats import wasserstein_distance

from ldl.metrics import DISTRIBUTION_METRICS
from ldl.metrics.functional import manhattan, wasserstein

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


@pytest.mark.parametrize("axis", [[1.0, 2, 3, 4, 5, 6, 7], [-3.0, 0, 0.5, 2, 10, 11, 40]])
def test_soft_metrics_are_those_of_lewidi(axis: list[float]) -> None:
    target, prediction = rows(50, 7)
    measured = wasserstein(torch.from_numpy(prediction), torch.from_numpy(target), axis)
    expected = [wasserstein_distance(axis, axis, g, d) for d, g in zip(target, prediction)]
    np.testing.assert_allclose(measured, expected, rtol=1e-12)
    measured = manhattan(torch.from_numpy(prediction), torch.from_numpy(target))
    np.testing.assert_allclose(measured, np.abs(target - prediction).sum(1), rtol=1e-12)


def test_soft_metrics_of_certain_labels_are_the_distance_and_2() -> None:
    certain = torch.eye(3, dtype=torch.float64)
    assert wasserstein(certain[[0, 1, 2]], certain[[2, 1, 0]], [1, 2, 4]).tolist() == [3, 0, 3]
    assert manhattan(certain[[0, 1, 2]], certain[[2, 1, 0]]).tolist() == [2, 0, 2]
