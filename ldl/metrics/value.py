"""Measures of decoded values, in the labels' unit. On a grid the error is averaged over the axes."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ldl.labels import LabelSpace
from ldl.metrics.measure import Mean, Measure


def absolute(predicted: Tensor, true: Tensor) -> Tensor:
    """Absolute error, of the shape of the values."""
    return (predicted - true).abs()


def along(axis: int, predicted: Tensor, true: Tensor) -> Tensor:
    """Absolute error along one axis of a grid, 0 or 1: (..., 2) to (...,)."""
    return (predicted - true)[..., axis].abs()


def within(theta: float, predicted: Tensor, true: Tensor) -> Tensor:
    """1 where the absolute error is at most ``theta``, else 0; its mean is the cumulative score CS(theta)."""
    return ((predicted - true).abs() <= theta).double()


def squared(predicted: Tensor, true: Tensor) -> Tensor:
    """Squared error, of the shape of the values."""
    return (predicted - true).square()


class RMSE(Mean):
    """Root of the mean squared error."""

    def __init__(self) -> None:
        super().__init__(squared)

    def compute(self) -> Tensor:
        return super().compute().sqrt()


def value_measures(labels: LabelSpace) -> list[Measure]:
    """MAE, RMSE and CS5, and the MAE of each axis that has a name."""
    return [
        Measure("mae", absolute, unit=True, of="value"),
        Measure("rmse", RMSE, unit=True, of="value"),
        Measure("cs5", partial(within, 5.0), higher_is_better=True, of="value"),
        *(
            Measure(f"mae_{name}", partial(along, axis), unit=True, of="value")
            for axis, name in enumerate(labels.axis_names)
        ),
    ]
