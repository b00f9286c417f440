"""All measures over collected rows, such as those of every fold together."""

from __future__ import annotations

import numpy as np
import torch
from torchmetrics import Metric

from ldl.labels import LabelSpace
from ldl.metrics.registry import DISTRIBUTION_METRICS
from ldl.metrics.stage import StageMetrics


def row_metrics(rows: dict[str, np.ndarray], labels: LabelSpace) -> dict[str, float]:
    """The measures that a test run logs, each row with the same weight, by their names in ``results.json``.

    ``rows`` has ``prediction`` and ``target`` (n, C); where the labels have values also ``predicted_value`` and
    ``value`` (n,) or (n, 2), and ``train_count`` (n,) where it is known. Measures of distributions come first.
    """
    metrics = StageMetrics(labels, maps=rows["prediction"].ndim > 2)
    for metric in metrics.modules():
        if isinstance(metric, Metric):
            # The rows are those of all processes, and the first process measures them alone.
            metric.distributed_available_fn = lambda: False
    measured: dict[str, float] = {}
    columns = {name: torch.from_numpy(column) for name, column in rows.items()}
    for means in metrics.update({**columns, "index": torch.arange(len(rows["prediction"]))}):
        measured |= {name: float(number) for name, number in means.compute().items()}
    return ordered(measured | metrics.finish())


def ordered(measured: dict[str, float]) -> dict[str, float]:
    """The ten measures of distributions first, in their order; then all others as they come."""
    order = {name: number for number, name in enumerate(DISTRIBUTION_METRICS)}
    return dict(sorted(measured.items(), key=lambda item: order.get(item[0], len(order))))
