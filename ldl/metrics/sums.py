"""Sums that a network of 16 bits does not round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from torch import Tensor, nn


class Sums(nn.Module):
    """Moves with the model it is part of, and keeps its own precision; torchmetrics follow the model in both."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        return super()._apply(lambda state: state.to(fn(state).device), recurse)
