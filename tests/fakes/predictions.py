"""Predictions and targets of nominal labels, and the metrics of a run."""

from __future__ import annotations

import numpy as np
from torch import nn

from ldl.labels import LabelSpace
from ldl.metrics.stage import StageMetrics

NOMINAL = LabelSpace.nominal("abc")


def distribution_metrics() -> nn.Module:
    """The ten as a run has them."""
    return StageMetrics(NOMINAL).means["distribution"]


def rows(count: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    target, prediction = rng.dirichlet(np.full(labels, 0.3), count), rng.dirichlet(np.full(labels, 0.5), count)
    target[0, 1:] = 0
    return target / target.sum(1, keepdims=True), prediction
