"""Metrics of distributions and of decoded values."""

from torchmetrics import Metric, MetricCollection

from ldl.labels import LabelSpace
from ldl.metrics.classes import AUC, NLL, Accuracy
from ldl.metrics.distribution import DISTRIBUTION_METRICS
from ldl.metrics.value import MAE, RMSE, AxisMAE, CumulativeScore

__all__ = [
    "DISTRIBUTION_METRICS",
    "MAE",
    "MEASURED",
    "RMSE",
    "AxisMAE",
    "CumulativeScore",
    "all_metrics",
    "class_metrics",
    "distribution_metrics",
    "value_metrics",
]

MEASURED = {
    "distribution": ("prediction", "target"),
    "class": ("prediction", "target"),
    "value": ("predicted_value", "value"),
}
"""What each kind of metrics compares."""


def all_metrics(labels: LabelSpace, prefix: str = "", maps: bool = False) -> dict[str, MetricCollection]:
    """The metrics that labels have, by kind: those of distributions, of two classes, of values.

    With ``maps``, an output for every pixel, there are none of classes: AUC would keep all pixels of a data set.
    """
    classes = None if maps else class_metrics(labels, prefix)
    kinds = (distribution_metrics(prefix), classes, value_metrics(labels, prefix))
    return {kind: metrics for kind, metrics in zip(MEASURED, kinds) if metrics is not None}


def distribution_metrics(prefix: str = "") -> MetricCollection:
    """The ten measures between distributions, by name."""
    # Compute groups would share the state of metrics that differ in nothing but their measure.
    return MetricCollection(
        {name: cls() for name, cls in DISTRIBUTION_METRICS.items()}, prefix=prefix, compute_groups=False
    )


def class_metrics(labels: LabelSpace, prefix: str = "") -> MetricCollection | None:
    """Accuracy, AUC and NLL of two nominal labels; None for others."""
    if labels.kind != "nominal" or len(labels) != 2:
        return None
    return MetricCollection({"accuracy": Accuracy(), "auc": AUC(), "nll": NLL()}, prefix=prefix, compute_groups=False)


def value_metrics(labels: LabelSpace, prefix: str = "") -> MetricCollection | None:
    """MAE, RMSE and CS5 of decoded values, and the MAE of each axis that has a name; None for nominal labels."""
    if not labels.has_values:
        return None
    metrics: dict[str, Metric] = {"mae": MAE(), "rmse": RMSE(), "cs5": CumulativeScore(5.0)}
    metrics |= {f"mae_{name}": AxisMAE(axis) for axis, name in enumerate(labels.axis_names)}
    return MetricCollection(metrics, prefix=prefix, compute_groups=False)  # type: ignore[arg-type]
