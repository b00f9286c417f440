"""Baselines: the mean distribution of the training set, and of the nearest training rows (Geng, TKDE 2016)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.embedding import nearest
from ldl.methods.evidence import Evidence, weigh
from ldl.methods.torch_utils import as_rows
from ldl.methods.training_rows import check_rows, check_targets
from ldl.options import buffer, option, options
from ldl.validation.tensors import check_numbers, check_shapes, check_simplex


class MeanPredictor(FittedHead):
    """Mean baseline: predict the mean distribution of the training set for every instance.

    The mean has the smallest KL divergence among all constant predictions. The head has no options.
    """

    exact: ClassVar[tuple[str, ...]] = ("mean",)
    mean: Tensor

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffer ``mean`` (C,), uniform until fitted."""
        super().build(in_features, labels)
        self.register_buffer("mean", torch.full((len(labels),), 1 / len(labels)))

    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        """Store the mean of ``target`` (N, ..., C). Raises LDLError for no rows, or a row that is no distribution."""
        rows = target.flatten(0, -2)
        check_targets(type(self).__name__, rows)
        self.mean.copy_(rows.double().mean(0))

    def check_state(self) -> None:
        """Raise LDLError unless the mean is a distribution over the labels."""
        check_shapes(self, {"C": len(self.labels)}, mean="C")
        check_simplex(self, "mean", self.mean)

    def forward(self, features: Tensor) -> Tensor:
        """Return the mean (..., C) for any features (..., F), at least float32."""
        return self.mean.to(torch.promote_types(features.dtype, torch.float32)).expand(*features.shape[:-1], -1)


@options
class AAKNN(FittedHead):
    """Predict the mean distribution of the nearest training instances, by Euclidean distance.

    Args:
        neighbours: Number of neighbours, at most all training instances.
    """

    exact: ClassVar[tuple[str, ...]] = ("points", "distributions")
    points: Tensor = buffer()
    distributions: Tensor = buffer()

    neighbours: int = option(default=5, least=1)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers ``points`` (N, F) and ``distributions`` (N, C): one, uniform, until fitted."""
        super().build(in_features, labels)
        self.register_buffer("points", torch.zeros(1, in_features))
        self.register_buffer("distributions", torch.full((1, len(labels)), 1 / len(labels)))

    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        """Store features (N, F) and ``target`` (N, C). Raises LDLError for a bad feature or target."""
        check_rows(type(self).__name__, features, target)
        self.points, self.distributions = (part.to(torch.float32, copy=True) for part in (features, target))

    def check_state(self) -> None:
        """Raise LDLError unless the buffers are points with distributions."""
        check_shapes(self, {"C": len(self.labels), "F": self.in_features}, points="N F", distributions="N C")
        check_numbers(self, "points", self.points)
        check_simplex(self, "distributions", self.distributions)

    def evidence(self, features: Tensor) -> Evidence:
        """Return the neighbours of one instance (F,), the nearest first."""
        found = self._nearest(features[None])[0]
        weights = torch.full((len(found),), 1 / len(found))
        return weigh([f"row {row}" for row in found.tolist()], weights, self.distributions[found])

    def _nearest(self, rows: Tensor) -> Tensor:
        return nearest(rows.to(self.points.dtype), self.points, min(self.neighbours, len(self.points)))

    def forward(self, features: Tensor) -> Tensor:
        """Return distributions (..., C) of features (..., F), at least float32."""
        found = self._nearest(features.reshape(-1, features.shape[-1]))
        return as_rows(self.distributions[found].mean(1), features)
