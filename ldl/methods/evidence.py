"""What a prediction is put together from."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Evidence(NamedTuple):
    """Parts of a prediction, the weightiest first: their weighted sum is the distribution, or what it is made of.

    Attributes:
        names: What each part is, such as ``row 17`` of training, counted from 0, or ``tree 2, leaf 5``.
        weights: (n,) of the parts; some methods take parts away, with negative weights.
        distributions: (n, C) that each part stands for.
    """

    names: list[str]
    weights: Tensor
    distributions: Tensor

    def first(self, count: int) -> Evidence:
        """The weightiest parts, no more than ``count``."""
        return Evidence(self.names[:count], self.weights[:count], self.distributions[:count])


def weigh(names: list[str], weights: Tensor, distributions: Tensor) -> Evidence:
    """Parts in the order of their weights' sizes; those of no weight are left out."""
    weights = weights.to(distributions)
    order = weights.abs().argsort(descending=True, stable=True)
    order = order[weights[order] != 0]
    return Evidence([names[part] for part in order.tolist()], weights[order], distributions[order])
