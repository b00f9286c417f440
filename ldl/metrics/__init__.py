"""Metrics of predictions. To add your own, pass a :class:`Metric` to :func:`register`."""

from ldl.metrics.metric import Metric
from ldl.metrics.registry import DISTRIBUTION_METRICS, directions, higher_is_better, metrics_for, register

# Plugins written before the rename use these names.
Measure, measures = Metric, metrics_for

__all__ = [
    "DISTRIBUTION_METRICS", "Measure", "Metric", "directions", "higher_is_better", "measures", "metrics_for",
    "register",
]  # fmt: skip
