"""All metrics by the kind of labels, and the metrics that plugins register."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torchmetrics import Metric as TorchMetric
from torchmetrics.utilities import dim_zero_cat
from typing_extensions import override

from ldl.annotations.agreement import expected_nll, majority_hits, miller_madow
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.metrics import functional
from ldl.metrics.metric import MeanOverRows, Metric
from ldl.metrics.ordinal import line_metrics
from ldl.metrics.single_votes import SCORES

INTERVAL_LEVELS = (50, 80, 90)
"""Levels of calibrated intervals in per cent, in the order of ``predictions.csv`` and ``results.json``."""

DISTRIBUTION_METRICS = {
    metric.name: metric
    for metric in (
        Metric("kl", functional.kl),
        Metric("chebyshev", functional.chebyshev),
        Metric("clark", functional.clark),
        Metric("canberra", functional.canberra),
        Metric("cosine", functional.cosine, higher_is_better=True),
        Metric("intersection", functional.intersection, higher_is_better=True),
        Metric("euclidean", functional.euclidean),
        Metric("sorensen", functional.sorensen),
        Metric("squared_chi2", functional.squared_chi2),
        Metric("fidelity", functional.fidelity, higher_is_better=True),
    )
}
"""The ten metrics between distributions, by name."""

MAIN = ("kl", "mae", "accuracy")
"""Names of the metrics of ldl in one line about a result; other labels have other ones of them."""

_registered: dict[str, Metric] = {}


def register(metric: Metric) -> None:
    """Add a metric to logs, ``results.json`` and tables of all labels it is defined for; use it in plugins.

    Raises LDLError if the name is taken.
    """
    if metric.name in _registered or metric.name in DISTRIBUTION_METRICS:
        raise LDLError(f"there is a metric {metric.name!r} already; give yours another name")
    _registered[metric.name] = metric


def metrics_for(labels: LabelSpace, maps: bool = False) -> list[Metric]:
    """Return the metrics that are defined for ``labels``.

    Args:
        labels: The label space.
        maps: Whether every pixel is a row; metrics that need all rows at once are left out, since they would keep all
            pixels of a data set.

    Raises:
        LDLError: A registered metric has the name of another one.
    """
    two, is_line = labels.kind == "nominal" and len(labels) == 2, labels.kind == "ordinal"
    along_axes = [
        Metric(f"mae_{name}", partial(absolute_along, axis), unit=True, of="value")
        for axis, name in enumerate(labels.axis_names)
    ]
    wasserstein = partial(_wasserstein, labels.axes[0] if is_line else ())
    distances = [Metric("wasserstein", wasserstein, unit=True, detail=True, of="votes")] if is_line else []
    tables = {
        "distribution": list(DISTRIBUTION_METRICS.values()),
        "class": list(CLASS_METRICS) if two and not maps else None,
        "value": [*VALUE_METRICS, *along_axes] if labels.has_values else None,
        "interval": list(INTERVAL_METRICS) if labels.has_values and not maps else None,
        "set": list(SET_METRICS) if not labels.has_values and not maps else None,
        "votes": [*VOTE_METRICS, *distances] if not maps else None,
        "rater": list(RATER_METRICS[: 3 if is_line else 2]) if not maps else None,
        "line": line_metrics(labels) if is_line and not maps else None,
    }
    built_in = [metric for table in tables.values() for metric in table or ()]
    registered = [metric for metric in _registered.values() if metric.function and tables[metric.of] is not None]
    if taken := {metric.name for metric in built_in} & {metric.name for metric in registered}:
        raise LDLError(f"there is a metric {min(taken)!r} of these labels already; rename the registered one")
    return built_in + registered


def directions(labels: LabelSpace, maps: bool = False) -> dict[str, bool]:
    """Return by name whether higher is better, for the metrics of ``labels`` that have a better direction."""
    return {
        metric.name: metric.higher_is_better
        for metric in metrics_for(labels, maps)
        if metric.higher_is_better is not None
    }


def higher_is_better(name: str) -> bool | None:
    """Return whether a higher value of a metric is better; None if neither direction is, as for counts and biases.

    Names are as in ``results.json``, including registered metrics. A metric of an unknown name counts as an error, for
    which lower is better.
    """
    metrics = _registered | DISTRIBUTION_METRICS | {metric.name: metric for metric in (*CLASS_METRICS, *VOTE_METRICS)}
    if name in metrics:
        return metrics[name].higher_is_better
    if re.match("n_|bias|coverage|interval_|set_", name):
        return None
    return re.fullmatch(r"cs\d+", name) is not None


def main_metrics() -> list[str]:
    """Return the names of the metrics in one line about a result, those of ldl first."""
    return [*MAIN, *(metric.name for metric in _registered.values() if metric.main)]


def ordered(measured: dict[str, float]) -> dict[str, float]:
    """Return results with the ten metrics between distributions first, in their order."""
    order = {name: number for number, name in enumerate(DISTRIBUTION_METRICS)}
    return dict(sorted(measured.items(), key=lambda item: order.get(item[0], len(order))))


# Decoded values, in the labels' unit; on a grid the error is averaged over the axes.


def absolute(predicted: Tensor, true: Tensor) -> Tensor:
    """Absolute error, of the shape of the values."""
    return (predicted - true).abs()


def absolute_along(axis: int, predicted: Tensor, true: Tensor) -> Tensor:
    """Absolute error along one axis of a grid: (..., 2) to (...,)."""
    return (predicted - true)[..., axis].abs()


def within(theta: float, predicted: Tensor, true: Tensor) -> Tensor:
    """1 if the absolute error is at most ``theta``, else 0; its mean is the cumulative score CS(theta)."""
    return ((predicted - true).abs() <= theta).double()


def squared(predicted: Tensor, true: Tensor) -> Tensor:
    """Squared error, of the shape of the values."""
    return (predicted - true).square()


class RMSE(MeanOverRows):
    """Root of the mean squared error."""

    def __init__(self) -> None:
        super().__init__(squared)

    @override
    def compute(self) -> Tensor:
        return super().compute().sqrt()


VALUE_METRICS = (
    Metric("mae", absolute, unit=True, of="value"),
    Metric("rmse", RMSE, unit=True, of="value"),
    Metric("cs5", partial(within, 5.0), higher_is_better=True, of="value"),
)


# Two classes.


def correct(prediction: Tensor, target: Tensor) -> Tensor:
    """1 if the likeliest label is that of the target, else 0."""
    return (prediction.argmax(-1) == target.argmax(-1)).to(prediction.dtype)


def cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    """-sum d ln g; in [0, inf], and infinite if a label that occurs has probability 0."""
    return -torch.where(target > 0, target * prediction.log(), 0.0).sum(-1)


class AUC(TorchMetric):
    """Area under the ROC curve of the second of two labels; NaN if all rows are of one class or a prediction is NaN.

    ``update(prediction, target, weight)`` takes (..., 2) twice, and weights (B,) of the rows or None. The class of an
    instance is its likeliest label.
    """

    full_state_update = False
    score: list[Tensor]
    label: list[Tensor]
    weight: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.add_state("score", [], dist_reduce_fx="cat")
        self.add_state("label", [], dist_reduce_fx="cat")
        self.add_state("weight", [], dist_reduce_fx="cat")

    @override
    def update(self, prediction: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        # The log ratio separates probabilities near 1.
        self.score.append((prediction[..., 1].log().double() - prediction[..., 0].log().double()).flatten())
        self.label.append(target.argmax(-1).flatten())
        whole = torch.ones_like(self.score[-1]).reshape(target.shape[:-1])
        self.weight.append((whole if weight is None else whole * weight.reshape(-1, *[1] * (whole.ndim - 1))).flatten())

    @override
    def compute(self) -> Tensor:
        score, label, weight = (dim_zero_cat(state) for state in (self.score, self.label, self.weight))
        if len(label.unique()) < 2 or score.isnan().any():
            return score.new_tensor(torch.nan)
        limit = torch.finfo(score.dtype).max
        columns = (column.cpu().numpy() for column in (label, score.clamp(-limit, limit)))
        return score.new_tensor(roc_auc_score(*columns, sample_weight=weight.cpu().numpy()))


CLASS_METRICS = (
    Metric("accuracy", correct, higher_is_better=True, of="class"),
    Metric("auc", AUC, higher_is_better=True, of="class"),
    Metric("nll", cross_entropy, of="class"),
)


# Votes, if batches have their numbers; targets are the observed shares.


def _of_votes(function: Callable[..., np.ndarray], prediction: Tensor, target: Tensor, votes: Tensor) -> Tensor:
    """Apply a function of predictions and counts of votes, in numpy, to predictions, shares and numbers of votes."""
    counts = target * votes[:, None]
    return torch.from_numpy(function(prediction.cpu().numpy(), counts.cpu().numpy())).to(target)


def _kl_bias(prediction: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return miller_madow(counts)


def _manhattan(prediction: Tensor, target: Tensor, votes: Tensor) -> Tensor:
    return functional.manhattan(prediction, target)


def _wasserstein(axis: Sequence[float], prediction: Tensor, target: Tensor, votes: Tensor) -> Tensor:
    return functional.wasserstein(prediction, target, axis)


def _nll_by_votes(prediction: Tensor, target: Tensor, votes: Tensor) -> tuple[Tensor, Tensor]:
    return _of_votes(expected_nll, prediction, target, votes), votes


class VoteWeightedNLL(MeanOverRows):
    """Mean NLL of a vote over all votes, so that an item with more votes counts more."""

    def __init__(self) -> None:
        super().__init__(_nll_by_votes)


VOTE_METRICS = (
    Metric("vote_nll", partial(_of_votes, expected_nll), of="votes"),
    Metric("vote_nll_weighted", VoteWeightedNLL, of="votes"),
    Metric("majority_accuracy", partial(_of_votes, majority_hits), True, of="votes"),
    Metric("kl_bias", partial(_of_votes, _kl_bias), None, of="votes"),
    Metric("manhattan", _manhattan, detail=True, of="votes"),
)


# Single votes, if batches have them with their raters: the scores (n, S) of ``ldl.metrics.single_votes``.


def _by_items(score: int, scores: Tensor) -> tuple[Tensor, Tensor]:
    return scores[:, score], (scores[:, 0] > 0).double()


def _by_votes(score: int, scores: Tensor) -> tuple[Tensor, Tensor]:
    return scores[:, score], scores[:, 0]


RATER_METRICS = (
    Metric("rater_nll", partial(_by_votes, SCORES.index("nll")), of="rater"),
    Metric("rater_error", partial(_by_items, SCORES.index("error")), of="rater"),
    Metric("rater_distance", partial(_by_items, SCORES.index("distance")), of="rater"),
)
"""The last one is for ordinal labels."""


# Calibrated intervals (n, levels, ...) of labels with values, and sets (n, levels, C) of nominal labels. They are
# computed if the checkpoint holds a calibration.


def _interval_covers(number: int, ends: Tensor, value: Tensor) -> Tensor:
    ends = ends[:, number]
    return ((ends[..., 0] <= value) & (value <= ends[..., 1])).double()


def _interval_width(number: int, ends: Tensor, value: Tensor) -> Tensor:
    return ends[:, number, ..., 1] - ends[:, number, ..., 0]


def _set_mass(number: int, sets: Tensor, target: Tensor) -> Tensor:
    return (sets[:, number] * target).sum(-1)


def _set_size(number: int, sets: Tensor, target: Tensor) -> Tensor:
    return sets[:, number].sum(-1)


INTERVAL_METRICS = tuple(
    Metric(f"{name}{level}", partial(function, number), None, unit=name == "interval_width", detail=True, of="interval")
    for number, level in enumerate(INTERVAL_LEVELS)
    for name, function in (("interval_coverage", _interval_covers), ("interval_width", _interval_width))
)
"""Per level the share of true values inside the interval, and its width."""

SET_METRICS = tuple(
    Metric(f"{name}{level}", partial(function, number), None, detail=True, of="set")
    for number, level in enumerate(INTERVAL_LEVELS)
    for name, function in (("set_coverage", _set_mass), ("set_size", _set_size))
)
"""Per level the share of true mass inside the set, and its number of labels."""
