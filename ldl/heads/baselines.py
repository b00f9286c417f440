"""Baselines: the mean distribution of the training set, and of the nearest training rows (Geng, TKDE 2016)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.embedding import nearest
from ldl.methods.evidence import Evidence, weigh
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import as_rows
from ldl.methods.training_rows import check_rows, check_targets
from ldl.options import buffer, option, options


class MeanPredictor(FittedHead):
    """Mean baseline: predict the mean distribution of the training set for every instance.

    The mean has the smallest KL divergence among all constant predictions. The head has no options.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import MeanPredictor
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(MeanPredictor()).fit(X, y).predict([[0.4]]).round(1)
        array([[0.5, 0.5]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = True
    exact: ClassVar[tuple[str, ...]] = ("mean",)
    mean: Tensor

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffer ``mean`` (C,), uniform until fitted."""
        super().build(in_features, labels)
        self.register_buffer("mean", torch.full((len(labels),), 1 / len(labels)))

    def fit(self, rows: Rows, collective: Collective) -> None:
        """Store the weighted mean of the targets (N, ..., C).

        Raises LDLError for no rows, or a row that is no distribution.
        """
        target = rows.target.flatten(0, -2)
        check_targets(type(self).__name__, target)
        self.mean.copy_(target.double().mean(0) if rows.weight is None else rows.share @ target.double())

    @override
    def describe_buffers(self) -> dict[str, str]:
        return {"mean": "C: distributions"}

    def forward(self, features: Tensor) -> Tensor:
        """Return the mean (..., C) for any features (..., F), at least float32."""
        return self.mean.to(torch.promote_types(features.dtype, torch.float32)).expand(*features.shape[:-1], -1)


@options
class AAKNN(FittedHead):
    """Predict the mean distribution of the nearest training instances, by Euclidean distance.

    A row of weight 2 counts as two neighbours.

    Args:
        neighbours: Number of neighbours, at most all training instances. Weighted rows count until their weights reach
            this number, and are never more than it.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import AAKNN
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(AAKNN(neighbours=3)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = True
    exact: ClassVar[tuple[str, ...]] = ("points", "distributions", "weights")
    points: Tensor = buffer()
    distributions: Tensor = buffer()
    weights: Tensor = buffer()

    neighbours: int = option(default=5, least=1)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers ``points`` (N, F), ``distributions`` (N, C), ``weights`` (N,): one, until fitted."""
        super().build(in_features, labels)
        self.register_buffer("points", torch.zeros(1, in_features))
        self.register_buffer("distributions", torch.full((1, len(labels)), 1 / len(labels)))
        self.register_buffer("weights", torch.ones(1))

    def fit(self, rows: Rows, collective: Collective) -> None:
        """Store the features, targets and weights of the rows. Raises LDLError for a bad feature or target."""
        check_rows(type(self).__name__, rows)
        weight = torch.ones_like(rows.target[:, 0]) if rows.weight is None else rows.weight
        self.points = rows.features.to(torch.float32, copy=True)
        self.distributions = rows.target.to(torch.float32, copy=True)
        self.weights = weight.to(torch.float32, copy=True)

    @override
    def describe_buffers(self) -> dict[str, str]:
        return {"points": "N F: finite", "distributions": "N C: distributions", "weights": "N: positive"}

    def evidence(self, features: Tensor) -> Evidence:
        """Return the neighbours of one instance (F,), the nearest first."""
        neighbours, shares = self._nearest(features[None])
        names = [f"row {row}" for row in neighbours[0].tolist()]
        return weigh(names, shares[0], self.distributions[neighbours[0]])

    def _nearest(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the neighbours (B, k) and their shares in the prediction."""
        neighbours = nearest(rows.to(self.points.dtype), self.points, min(self.neighbours, len(self.points)))
        weights = self.weights[neighbours]
        before = weights.cumsum(1) - weights
        counted = torch.minimum(weights, (self.neighbours - before).clamp_min(0))
        return neighbours, counted / counted.sum(1, keepdim=True)

    def forward(self, features: Tensor) -> Tensor:
        """Return distributions (..., C) of features (..., F), at least float32."""
        neighbours, shares = self._nearest(features.reshape(-1, features.shape[-1]))
        return as_rows((shares[..., None] * self.distributions[neighbours]).sum(1), features)

    def complete_state(self, state: dict[str, Any], prefix: str) -> None:
        """Add equal weights, which older checkpoints lack."""
        if isinstance(points := state.get(f"{prefix}points"), Tensor):
            state.setdefault(f"{prefix}weights", torch.ones(points.shape[:1]))
