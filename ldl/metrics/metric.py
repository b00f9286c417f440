"""Definition of one metric: how it is computed, logged, stored and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torchmetrics
from torch import Tensor
from typing_extensions import override

from ldl.moved import old_names

__getattr__ = old_names(__name__)

MetricInput = Literal["distribution", "class", "value", "interval", "set", "votes", "rater", "line"]


@dataclass(frozen=True)
class Metric:
    """A metric of test and validation instances; add your own with :func:`ldl.metrics.register`.

    Attributes:
        name: Name in ``results.json``, logs and tables.
        function: Maps a predicted and a true batch in float64 to one number per row, (...,); the metric is their mean
            over all rows and processes. Of a pair that it returns, the second are weights (B,), such as numbers of
            votes. Or a torchmetrics class without arguments that is updated with both batches, and with the weights
            (B,) of the rows if its ``update`` has an argument ``weight``.
            For ``line``, a function of :class:`ldl.metrics.ordinal.OrdinalPredictions` to a number, or None if
            undefined.
            None: a report logs the metric by itself, and only its description stands here.
        higher_is_better: None if neither direction is better.
        unit: Whether the metric has the unit of the labels.
        detail: Whether the metric is only in ``results.json`` and the log of tests, not in tables and validation.
        of: Compared columns, which decide for which labels the metric is defined. ``distribution``: distributions (...,
            C), all labels; ``class``: the same for two nominal labels; ``value``: decoded and true values (...,) or
            (..., 2), labels with values; ``interval``: calibrated intervals and true values; ``set``: calibrated label
            sets and distributions; ``votes``: distributions, observed shares, and numbers of votes (B,), if batches
            have ``votes``; ``rater``: scores of the single votes on an item (B, S) of
            :func:`ldl.metrics.single_votes.score_votes`, if batches have ``vote``; ``line``: rows of ordinal labels.
            Maps, with one row per pixel, have ``distribution`` and ``value`` only.
        size: Name of the metric that counts the instances of its group, for metrics of a group.
        main: Whether a registered metric is in the line about a fold and in the list of runs, as ``kl`` is.

    Examples:
        >>> import torch
        >>> from ldl.metrics import Metric
        >>> metric = Metric("half_l1", lambda prediction, target: (prediction - target).abs().sum(-1) / 2)
        >>> metric.function(torch.tensor([[0.2, 0.8]]), torch.tensor([[0.5, 0.5]]))
        tensor([0.3000])
    """

    name: str
    function: Callable[..., Any] | None
    higher_is_better: bool | None = False
    unit: bool = False
    detail: bool = False
    of: MetricInput = "distribution"
    size: str | None = None
    main: bool = False

    def metric(self) -> torchmetrics.Metric:
        """Return a new torchmetrics object."""
        assert self.function is not None, f"{self.name} is logged by a report"
        return self.function() if isinstance(self.function, type) else MeanOverRows(self.function)


class MeanOverRows(torchmetrics.Metric):
    """Weighted mean over rows, summed in float64: exact over any number of processes, and NaN without rows.

    Args:
        function: Maps the compared columns of a batch, in float64, to one number per row, or to a pair of these and of
            weights (B,), by which those of the rows are multiplied.
    """

    full_state_update = False
    total: Tensor
    rows: Tensor

    def __init__(self, function: Callable[..., Tensor | tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.function = function
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("rows", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, *compared: Tensor, weight: Tensor | None = None) -> None:
        """Add predicted and true distributions (..., C), or values (...,) or (..., 2), and weights (B,) of the rows."""
        measured = self.function(*(column.double() for column in compared))
        if isinstance(measured, tuple):
            measured, share = measured
            weight = share if weight is None else share * weight
        if weight is None:
            self.total += measured.sum()
            self.rows += measured.numel()
        else:
            weight = weight.double().reshape(-1, *[1] * (measured.ndim - 1)).expand_as(measured)
            self.total += (weight * measured).sum()
            self.rows += weight.sum()

    @override
    def compute(self) -> Tensor:
        return self.total / self.rows
