"""Measures of decoded values, in the labels' unit. On a grid the error is averaged over the axes."""

from __future__ import annotations

import torch
from torch import Tensor
from torchmetrics import Metric


class _MeanError(Metric):
    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def _score(self, error: Tensor) -> Tensor:
        raise NotImplementedError

    def update(self, prediction: Tensor, target: Tensor) -> None:
        """Take predicted and true values of the same shape, (...,) or (..., 2)."""
        score = self._score(prediction.double() - target.double())
        self.total += score.sum()
        self.count += score.numel()

    def compute(self) -> Tensor:
        return self.total / self.count


class MAE(_MeanError):
    """Mean absolute error."""

    def _score(self, error: Tensor) -> Tensor:
        return error.abs()


class AxisMAE(MAE):
    """Mean absolute error along one axis of a grid.

    Args:
        axis: 0 or 1.
    """

    def __init__(self, axis: int = 0) -> None:
        super().__init__()
        self.axis = axis

    def _score(self, error: Tensor) -> Tensor:
        return error[..., self.axis].abs()


class RMSE(_MeanError):
    """Root of the mean squared error."""

    def _score(self, error: Tensor) -> Tensor:
        return error.square()

    def compute(self) -> Tensor:
        return super().compute().sqrt()


class CumulativeScore(_MeanError):
    """CS(theta): share of values whose absolute error is at most ``theta``, in [0, 1].

    Args:
        theta: The tolerance, in the labels' unit.
    """

    higher_is_better = True

    def __init__(self, theta: float = 5.0) -> None:
        super().__init__()
        self.theta = theta

    def _score(self, error: Tensor) -> Tensor:
        return (error.abs() <= self.theta).double()
