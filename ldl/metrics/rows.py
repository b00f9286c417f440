"""All measures over collected rows, such as those of every fold together."""

from __future__ import annotations

import numpy as np
import torch

from ldl.labels import LabelSpace
from ldl.metrics import DISTRIBUTION_METRICS, MEASURED, all_metrics
from ldl.metrics.ordinal import ordinal_metrics


def row_metrics(rows: dict[str, np.ndarray], labels: LabelSpace) -> dict[str, float]:
    """The measures that a test run logs, each row with the same weight.

    Args:
        rows: ``prediction`` and ``target`` (n, C); where the labels have values also ``predicted_value`` and
            ``value`` (n,) or (n, 2), and ``train_count`` (n,) where it is known.
        labels: The label space.

    Returns:
        The same names as in ``results.json``, distributions first.
    """
    measured: dict[str, float] = {}
    for kind, metrics in all_metrics(labels, maps=rows["prediction"].ndim > 2).items():
        for metric in metrics.values():
            # The rows are those of all processes, and the first process measures them alone.
            metric.distributed_available_fn = _alone
        metrics.update(*(torch.from_numpy(rows[name]) for name in MEASURED[kind]))
        measured |= {name: float(number) for name, number in metrics.compute().items()}
    return ordered(measured | ordinal_row_metrics(rows, labels))


def _alone() -> bool:
    return False


def ordered(measured: dict[str, float]) -> dict[str, float]:
    """The ten measures of distributions first, in their order; then all others as they come."""
    order = {name: number for number, name in enumerate(DISTRIBUTION_METRICS)}
    return dict(sorted(measured.items(), key=lambda item: order.get(item[0], len(order))))


def ordinal_row_metrics(rows: dict[str, np.ndarray], labels: LabelSpace) -> dict[str, float]:
    """Those of :func:`ldl.metrics.ordinal.ordinal_metrics`; none where labels are not ordinal or rows are maps."""
    if labels.kind != "ordinal" or rows["prediction"].ndim != 2 or "value" not in rows:
        return {}
    return ordinal_metrics(rows["prediction"], rows["predicted_value"], rows["value"], labels, rows.get("train_count"))
