"""AA-kNN: the mean distribution of the nearest training instances (Geng, TKDE 2016)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.embedding.neighbours import nearest
from ldl.methods.evidence import Evidence, weigh
from ldl.methods.mapped import kept
from ldl.methods.rows import check_rows
from ldl.options import buffer, option, options
from ldl.trust.learned import check_numbers, check_shapes, check_simplex


@options
class AAKNN(FittedHead):
    """Predicts the mean distribution of the ``neighbours`` nearest training instances, by Euclidean distance.

    Where there are fewer training instances, all are taken.

    Args:
        neighbours: How many.
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
        """Keep features (N, F) and ``target`` (N, C). Raises LDLError: a bad feature or target."""
        check_rows(type(self).__name__, features, target)
        self.points, self.distributions = kept(features, torch.float32), kept(target, torch.float32)

    def check_state(self) -> None:
        """Raise LDLError where the buffers are no points with distributions."""
        check_shapes(self, {"C": len(self.labels), "F": self.in_features}, points="N F", distributions="N C")
        check_numbers(self, "points", self.points)
        check_simplex(self, "distributions", self.distributions)

    def evidence(self, features: Tensor) -> Evidence:
        """The neighbours of one instance (F,), the nearest first."""
        found = self._nearest(features[None])[0]
        weights = torch.full((len(found),), 1 / len(found))
        return weigh([f"row {row}" for row in found.tolist()], weights, self.distributions[found])

    def _nearest(self, rows: Tensor) -> Tensor:
        return nearest(rows.to(self.points.dtype), self.points, min(self.neighbours, len(self.points)))

    def forward(self, features: Tensor) -> Tensor:
        """Distributions (..., C) of features (..., F), at least float32."""
        found = self._nearest(features.reshape(-1, features.shape[-1]))
        mean = self.distributions[found].mean(1).to(torch.promote_types(features.dtype, torch.float32))
        return mean.reshape(*features.shape[:-1], len(self.labels))
