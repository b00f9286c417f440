"""One row a measure: all that it takes to be measured, logged, written down and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torchmetrics import Metric

Kind = Literal["distribution", "class", "value", "interval", "set", "line"]


@dataclass(frozen=True)
class Measure:
    """What is measured of test and validation instances; with :func:`ldl.metrics.registry.register` also one's own.

    Attributes:
        name: What it is called in ``results.json``, logs and tables.
        function: Of a predicted and a true batch in float64, a number for every row, (...,), of which the mean over
            all rows and processes is the measure; or a torchmetrics class that is updated with the two and made
            without arguments. Of ``line`` it is a function of :class:`ldl.metrics.ordinal.Rows`, all rows at once, to
            one number, or to None where they do not tell.
        higher_is_better: None where neither is.
        unit: Whether it is in the unit of the labels.
        detail: Whether it is left to ``results.json`` and the log of tests, out of tables and of validation.
        of: What is compared, and so which labels have it. ``distribution``: distributions (..., C), of all labels;
            ``class``: the same of two nominal labels; ``value``: decoded and true values (...,) or (..., 2), of labels
            with values; ``interval``: calibrated intervals and true values; ``set``: calibrated sets and distributions
            (:mod:`ldl.metrics.intervals`); ``line``: rows of ordinal labels. Maps, where every pixel is a row, have
            ``distribution`` and ``value`` alone.
        size: Name of the measure that counts the instances of its group, where it is of a group.
    """

    name: str
    function: Callable[..., Any]
    higher_is_better: bool | None = False
    unit: bool = False
    detail: bool = False
    of: Kind = "distribution"
    size: str | None = None

    def metric(self) -> Metric:
        """A new torchmetrics object of it."""
        return self.function() if isinstance(self.function, type) else Mean(self.function)


class Mean(Metric):
    """Mean of a measure over rows, summed in float64: exact over any number of processes, and NaN before any row.

    ``function`` takes two batches in float64 to a number for every row.
    """

    full_state_update = False
    total: Tensor
    rows: Tensor

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("rows", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, prediction: Tensor, target: Tensor) -> None:
        """Take predicted and true distributions (..., C), or values (...,) or (..., 2)."""
        measured = self.function(prediction.double(), target.double())
        self.total += measured.sum()
        self.rows += measured.numel()

    def compute(self) -> Tensor:
        return self.total / self.rows
