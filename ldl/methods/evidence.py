"""Evidence: the parts of which a prediction is composed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Evidence(NamedTuple):
    """Parts of a prediction by falling weight. Their weighted sum is the distribution, or its basis.

    Attributes:
        names: Names of the parts, such as ``row 17`` of the training set, counted from 0, or ``tree 2, leaf 5``.
        weights: (n,); negative for parts that some methods subtract.
        distributions: (n, C), the distribution of each part.
    """

    names: list[str]
    weights: Tensor
    distributions: Tensor

    def first(self, count: int) -> Evidence:
        """Return the at most ``count`` parts of the largest weights."""
        return Evidence(self.names[:count], self.weights[:count], self.distributions[:count])


def of_leaves(leaves: Tensor, values: Tensor) -> Evidence:
    """Return the leaves (T,) that one instance reaches in T trees, with equal weights, and their ``values`` (L, C)."""
    names = [f"tree {tree}, leaf {leaf}" for tree, leaf in enumerate(leaves.tolist())]
    return weigh(names, torch.full((len(leaves),), 1 / len(leaves)), values[leaves.long()])


def weigh(names: list[str], weights: Tensor, distributions: Tensor) -> Evidence:
    """Sort parts by the absolute value of their weights, and drop parts of weight 0."""
    weights = weights.to(distributions)
    order = weights.abs().argsort(descending=True, stable=True)
    order = order[weights[order] != 0]
    return Evidence([names[index] for index in order.tolist()], weights[order], distributions[order])
