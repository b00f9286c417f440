"""AA-kNN: the mean distribution of the nearest training instances (Geng, TKDE 2016)."""

from __future__ import annotations

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.neighbours import nearest


class AAKNN(FittedHead):
    """Predicts the mean distribution of the ``neighbours`` nearest training instances, by Euclidean distance.

    Where there are fewer training instances, all are taken.

    Args:
        neighbours: How many.
    """

    points: Tensor
    distributions: Tensor

    def __init__(self, neighbours: int = 5) -> None:
        super().__init__()
        self.neighbours = neighbours

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers ``points`` (N, F) and ``distributions`` (N, C): one, uniform, until fitted."""
        if self.neighbours < 1:
            raise LDLError(f"AAKNN.neighbours {self.neighbours!r} must be at least 1")
        super().build(in_features, labels)
        self.register_buffer("points", torch.zeros(1, in_features))
        self.register_buffer("distributions", torch.full((1, len(labels)), 1 / len(labels)))

    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        """Keep features (N, F) and ``target`` (N, C). Raises LDLError for a feature that is not finite."""
        check_rows(type(self).__name__, features, target)
        self.points, self.distributions = features.float(), target.float()

    def forward(self, features: Tensor) -> Tensor:
        """Features (..., F) to distributions (..., C)."""
        rows = features.reshape(-1, features.shape[-1]).to(self.points.dtype)
        found = nearest(rows, self.points, min(self.neighbours, len(self.points)))
        return self.distributions[found].mean(1).reshape(*features.shape[:-1], len(self.labels))


def check_rows(name: str, features: Tensor, target: Tensor) -> None:
    """Raise LDLError where there are no training rows, or one has a feature that is not finite."""
    if features.ndim != 2 or not len(features) or len(features) != len(target):
        raise LDLError(f"{name} is fitted on (N, F) features, N at least 1, got {tuple(features.shape)}")
    bad = (~features.isfinite()).nonzero()
    if len(bad):
        row, column = bad[0].tolist()
        raise LDLError(
            f"{name} cannot take {float(features[row, column])}: training row {row}, feature {column}; "
            "fill or drop missing and infinite features first"
        )
