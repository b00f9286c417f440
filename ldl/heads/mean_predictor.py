"""The constant predictor: the foil that every head must beat."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.rows import check_targets
from ldl.trust.learned import check_shapes, check_simplex


class MeanPredictor(FittedHead):
    """Predicts the mean distribution of the training set for every instance.

    The mean minimises the KL divergence among all constants. It takes no options.
    """

    exact: ClassVar[tuple[str, ...]] = ("mean",)
    mean: Tensor

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffer ``mean`` (C,), uniform until fitted."""
        super().build(in_features, labels)
        self.register_buffer("mean", torch.full((len(labels),), 1 / len(labels)))

    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        """Store the mean of ``target`` (N, ..., C). Raises LDLError: no rows, or one that is no distribution."""
        rows = target.flatten(0, -2)
        check_targets(type(self).__name__, rows)
        self.mean.copy_(rows.double().mean(0))

    def check_state(self) -> None:
        """Raise LDLError where the mean is no distribution over the labels."""
        check_shapes(self, {"C": len(self.labels)}, mean="C")
        check_simplex(self, "mean", self.mean)

    def forward(self, features: Tensor) -> Tensor:
        """The mean, (..., C), whatever the features (..., F) are, at least float32."""
        return self.mean.to(torch.promote_types(features.dtype, torch.float32)).expand(*features.shape[:-1], -1)
