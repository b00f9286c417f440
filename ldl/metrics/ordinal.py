"""Metrics of predictions over ordinal labels that need all test rows at once.

Arrays are numpy: ``prediction`` (n, C), ``value`` (n,) true values and ``axis`` (C,) rising values of the labels.
Everything is computed in float64 on rows scaled to sum 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ldl.labels import KL_FLOOR, LabelSpace
from ldl.metrics.metric import Metric
from ldl.moved import old_names

COVERAGES = (50, 80, 90, 95)
"""Levels of the central intervals whose coverage is computed, in per cent."""

CALIBRATION_LEVELS = np.arange(1, 20) / 20
"""Levels 0.05, 0.10, ..., 0.95 of the calibration error."""

THETAS = tuple(theta for theta in range(11) if theta != 5)
"""Tolerances of the cumulative scores ``cs0`` to ``cs10``; ``cs5`` is a metric of values."""

MANY, FEW = 100, 20
"""Labels with more than 100 training instances are many-shot, with less than 20 few-shot, others medium-shot."""

SHOTS = ("many", "medium", "few")

BAND = 10
"""Width of the bands of values, in the labels' unit: decades, for ages in years."""


@dataclass(frozen=True)
class OrdinalPredictions:
    """The predictions of all test rows of ordinal labels.

    Attributes:
        prediction: (n, C) predicted distributions, on the simplex.
        predicted_value: (n,) point predictions.
        value: (n,) true values, in the labels' unit.
        labels: The label space.
        train_count: (n,) training instances of each instance's label, or None if unknown.
        weight: (n,) weights of the rows in means, or None if all are equal.
    """

    prediction: np.ndarray
    predicted_value: np.ndarray
    value: np.ndarray
    labels: LabelSpace
    train_count: np.ndarray | None = None
    weight: np.ndarray | None = None

    @cached_property
    def axis(self) -> np.ndarray:
        """(C,) values of the labels."""
        return np.array(self.labels.axes[0])

    @cached_property
    def error(self) -> np.ndarray:
        """(n,) predicted minus true value."""
        return np.asarray(self.predicted_value, np.float64) - np.asarray(self.value, np.float64)

    @cached_property
    def spans(self) -> np.ndarray:
        """(n, 2); see :func:`pit`."""
        return pit(self.prediction, self.value, self.axis)

    @cached_property
    def floor(self) -> float:
        """Least error in geometric means: a hundredth of the smallest distance of two labels."""
        return 0.01 * float(np.diff(self.axis).min()) if len(self.axis) > 1 else 0.01

    @cached_property
    def groups(self) -> dict[str, np.ndarray]:
        """Members, (n,) of bool, of the groups by training count, if known, and by value."""
        shots = {} if self.train_count is None else shot_groups(self.train_count)
        return shots | band_groups(self.value, self.labels)


def line_metrics(labels: LabelSpace) -> list[Metric]:
    """Return the metrics of ordinal labels over rows.

    ``nll``, ``crps``, ``coverage50`` to ``coverage95``, ``calibration_error``, ``gm``, ``balanced_mae``, and ``cs0`` to
    ``cs10`` without ``cs5``. Then for every group G its size ``n_G`` and ``mae_G``: ``many``, ``medium`` and ``few``,
    with ``gm_G``; bands of ten units such as ``20_29``, with the bias (predicted minus true) ``bias_G``. In an empty
    group ``n_G`` is 0 and the others are NaN.
    """
    line = partial(Metric, of="line")
    return [
        line("nll", lambda rows: mean(nll(rows.prediction, rows.value, rows.axis), rows.weight)),
        line("crps", lambda rows: mean(crps(rows.prediction, rows.value, rows.axis), rows.weight), unit=True),
        *(
            line(f"coverage{p}", lambda rows, p=p: coverage(rows.spans, p, rows.weight), None, detail=p != 90)
            for p in COVERAGES
        ),
        line("calibration_error", lambda rows: calibration_error(rows.spans, rows.weight)),
        line("gm", lambda rows: geometric_mean(rows.error, rows.floor, rows.weight), unit=True),
        line("balanced_mae", lambda rows: balanced_mae(rows.error, rows.value, rows.labels, rows.weight), unit=True),
        *(
            line(f"cs{t}", lambda rows, t=t: mean(np.abs(rows.error) <= t, rows.weight), True, detail=True)
            for t in THETAS
        ),
        *(metric for name in SHOTS for metric in _group_metrics(name, "mae", "gm")),
        *(metric for band in bands(labels) for metric in _group_metrics(band, "mae", "bias")),
    ]


def line_results(rows: OrdinalPredictions, metrics: list[Metric] | None = None) -> dict[str, float]:
    """Return the defined results by name; None computes :func:`line_metrics`."""
    metrics = line_metrics(rows.labels) if metrics is None else metrics
    results = {metric.name: metric.function(rows) for metric in metrics if metric.function is not None}
    return {name: result for name, result in results.items() if result is not None}


_GROUP_FUNCTIONS: dict[str, Callable[[np.ndarray, float, np.ndarray | None], float]] = {
    "n": lambda error, floor, weight: float(len(error)),
    "mae": lambda error, floor, weight: mean(np.abs(error), weight),
    "bias": lambda error, floor, weight: mean(error, weight),
    "gm": lambda error, floor, weight: geometric_mean(error, floor, weight),
}


def _group_metrics(group: str, *functions: str) -> list[Metric]:
    metrics = [Metric(f"n_{group}", partial(_of_group, group, "n"), None, detail=True, of="line")]
    for name in functions:
        better = None if name == "bias" else False
        detail = name != "mae" or group not in SHOTS
        function = partial(_of_group, group, name)
        metrics.append(Metric(f"{name}_{group}", function, better, True, detail, "line", size=f"n_{group}"))
    return metrics


def _of_group(group: str, function: str, rows: OrdinalPredictions) -> float | None:
    if group not in rows.groups:
        return None
    members = rows.groups[group]
    weight = None if rows.weight is None else rows.weight[members]
    return _GROUP_FUNCTIONS[function](rows.error[members], rows.floor, weight)


def nearest(axis: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the index of the label nearest to every value, (n,); halfway between two labels the lower one."""
    middles = (axis[1:] + axis[:-1]) / 2
    return np.searchsorted(middles, value, side="left")


def nll(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """-ln of the probability, at least 1e-12, of the label nearest to the true value; (n,), in [0, 27.7]."""
    chosen = np.take_along_axis(_normalized(prediction), nearest(axis, value)[:, None], 1)[:, 0]
    return -np.log(np.maximum(chosen, KL_FLOOR))


def crps(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Continuous ranked probability score E|X - y| - E|X - X'| / 2, exact; (n,), at least 0, in the labels' unit.

    X and X' are drawn from the predicted distribution. For a point mass at x it is |x - y|. Gneiting & Raftery,
    "Strictly proper scoring rules", JASA 2007.
    """
    p = _normalized(prediction)
    below = np.cumsum(p, 1)[:, :-1]
    # Half of E|X - X'| is the sum of F (1 - F) over the gaps between labels.
    spread = (below * (1 - below)) @ np.diff(axis)
    return (p * np.abs(axis - np.asarray(value, dtype=np.float64)[:, None])).sum(1) - spread


def pit(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Probability integral transform: the interval of probability, (n, 2), of the label nearest to the true value.

    It reaches from the mass of all lower labels to that mass plus the label's own. For calibrated predictions a number
    drawn uniformly from it is uniform. See :func:`pit_share`.
    """
    p = _normalized(prediction)
    label = nearest(axis, value)[:, None]
    upper = np.minimum(np.take_along_axis(np.cumsum(p, 1), label, 1), 1.0)
    return np.hstack([np.maximum(upper - np.take_along_axis(p, label, 1), 0.0), upper])


def pit_share(spans: np.ndarray, level: float) -> np.ndarray:
    """Share of every interval of :func:`pit` at or below ``level``, (n,) in [0, 1].

    Its mean over rows is ``level`` for calibrated predictions, whatever the labels' spacing (Czado, Gneiting & Held,
    "Predictive model assessment for count data", Biometrics 2009). The middle of the interval, which is often used
    instead, has that property only in the limit of fine labels.
    """
    lower, upper = spans.T
    width = upper - lower
    share = np.clip((level - lower) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    return np.where(width == 0, (lower <= level).astype(np.float64), share)


def coverage(spans: np.ndarray, percent: float, weight: np.ndarray | None = None) -> float:
    """Share of true values in the central interval with ``percent`` of the predicted mass, in [0, 1].

    A label on the edge of the interval counts with the share of its mass that lies inside.
    """
    outside = (1 - percent / 100) / 2
    return mean(pit_share(spans, 1 - outside) - pit_share(spans, outside), weight)


def reliability(
    spans: np.ndarray, levels: np.ndarray = CALIBRATION_LEVELS, weight: np.ndarray | None = None
) -> np.ndarray:
    """Observed share of true values at or below every predicted quantile of ``levels``, same shape."""
    return np.array([mean(pit_share(spans, level), weight) for level in levels])


def calibration_error(spans: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Mean absolute difference of observed and nominal shares over :data:`CALIBRATION_LEVELS`, in [0, 0.5].

    After Kuleshov et al., "Accurate uncertainties for deep learning using calibrated regression", ICML 2018.
    """
    return float(np.abs(reliability(spans, weight=weight) - CALIBRATION_LEVELS).mean())


def bands(labels: LabelSpace) -> dict[str, int]:
    """Return the first value of each band of ten units, by names such as ``20_29``; none unless labels span 20 to 200.

    On other scales, such as 0 to 1 or an income, ten units are not a sensible group.
    """
    axis = labels.axes[0]
    if not 2 * BAND <= axis[-1] - axis[0] <= 20 * BAND:
        return {}
    first, last = int(axis[0] // BAND), int(axis[-1] // BAND)
    return {f"{low}_{low + BAND - 1}": low for low in range(first * BAND, last * BAND + 1, BAND)}


def train_counts(labels: LabelSpace, train_values: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the number of training values nearest to the same label as each of ``values``, (n,)."""
    axis = np.array(labels.axes[0])
    counts = np.bincount(nearest(axis, np.asarray(train_values)), minlength=len(axis))
    return counts[nearest(axis, np.asarray(values))]


def geometric_mean(error: np.ndarray, floor: float, weight: np.ndarray | None = None) -> float:
    """Geometric mean of absolute errors of at least ``floor``; NaN without rows.

    Yang et al., "Delving into deep imbalanced regression", ICML 2021. The floor keeps one error of 0 from making the
    mean 0. Decoders that return labels (argmax, median) often have errors of 0, so compare results only between runs
    with the same decoder.
    """
    return float(np.exp(mean(np.log(np.maximum(np.abs(error), floor)), weight)))


def balanced_mae(error: np.ndarray, value: np.ndarray, labels: LabelSpace, weight: np.ndarray | None = None) -> float:
    """Mean over labels of the MAE of the instances nearest to each; labels without instances do not count.

    Ren et al., "Balanced MSE for imbalanced visual regression", CVPR 2022.
    """
    label = nearest(np.array(labels.axes[0]), value)
    weight = np.ones(len(error)) if weight is None else weight
    totals, counts = np.bincount(label, weight * np.abs(error)), np.bincount(label, weight)
    return float((totals[counts > 0] / counts[counts > 0]).mean()) if len(error) else float("nan")


def shot_groups(train_count: np.ndarray) -> dict[str, np.ndarray]:
    """Return the members, (n,) of bool, of each of :data:`SHOTS`."""
    medium = (train_count >= FEW) & (train_count <= MANY)
    return {"many": train_count > MANY, "medium": medium, "few": train_count < FEW}


def band_groups(value: np.ndarray, labels: LabelSpace) -> dict[str, np.ndarray]:
    """Return by names such as ``20_29`` the instances, (n,) of bool, whose true value lies in the band."""
    return {name: (value >= low) & (value < low + BAND) for name, low in bands(labels).items()}


def mean(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Weighted mean; NaN without values."""
    if not len(values):
        return float("nan")
    return float(values.mean() if weight is None else np.average(values, weights=weight.astype(np.float64)))


def _normalized(prediction: np.ndarray) -> np.ndarray:
    # Rows in single precision or less do not sum to 1 well enough for the scores.
    p = np.asarray(prediction, dtype=np.float64)
    return p / p.sum(1, keepdims=True)


__getattr__ = old_names("ldl.metrics.ordinal")
