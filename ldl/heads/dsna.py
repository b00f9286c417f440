"""Discriminative sparse neighbor approximation (Huang, Loy & Tang 2016)."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ldl.collective import Collective
from ldl.heads.cost_sensitive_forest import CostSensitiveForest
from ldl.labels import LabelSpace
from ldl.methods.dsna.clusters import gather_leaves, onto_simplex
from ldl.methods.dsna.weights import NeighbourWeighting, neighbour_weights
from ldl.methods.evidence import Evidence, weigh
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import as_rows, one_thread
from ldl.moved import old_names
from ldl.options import buffer, option, options

__getattr__ = old_names(__name__)

FEATURES_AT_ONCE = 2**22
"""Largest number of features of neighbours in memory at a time."""
SETTLED = 1e-3
"""Rounds end when no estimate moves by more than this share of the labels' range."""


@options
class DSNA(CostSensitiveForest):
    """Prediction from the neighbours that a cost-sensitive forest finds, weighted to approximate the query.

    The neighbours of a query q are the training rows in all leaves that it reaches. Label-aware clustering divides them
    into overlapping clusters, and the cluster with the nearest affine hull is used. In each round, the weights a of its
    members L are

        argmin ||q - L^T a||_2 + sparsity ||a||_1 + attraction ||a - anchor||_1     (Eq. 6)

    where the anchor is the normalised exp(-distance / width) of distances that depend on the current estimate of q's
    label (Eq. 5). The weights give the next estimate. Predicted values are linear combinations of the members' values
    and may exceed their range.

    Details that the paper does not state: features and labels are relative to the cluster's mean, so the mean gets the
    weight that is missing to 1. Distances are divided by the mean distance of the neighbourhood. The third term covers
    all members of the cluster. Labels of a grid are compared by Euclidean distance. The distribution is the same
    combination of the members' distributions, projected onto the simplex. With ``log_offset``, logarithms of values are
    combined. For labels without values, the estimate of a round is the label with the largest weight. One cluster with
    ``attraction`` 0 uses no labels.

    Args:
        clusters: Number of clusters K; the paper uses 2 to 4.
        overlap: A row also joins centroids that are at most this share farther than its nearest.
        tau: Trade-off of the label-aware distance.
        energy: Share of a cluster's variance that the directions of its affine hull carry, in (0, 1].
        width: Decay length h of the anchor with the distance.
        sparsity: Weight lambda of the l1 norm, for features of mean squared norm 1.
        attraction: Weight gamma of the distance to the anchor.
        squared: Whether to use half the squared norm of the residual instead of the norm.
        start: First estimate of the label: that of the ``forest``, or the mean (or majority) of the ``cluster``.
        rounds: Largest number of rounds; 1 keeps the first estimate for the anchor.
        tolerance: Tolerance of the solver; see ``ldl.methods.dsna.sparse``.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import DSNA
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(DSNA(trees=5)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = False
    no_graph: ClassVar[str] = (
        "for every row it solves a problem of as many neighbours as the row happens to have, with eigenvectors, for "
        "which ONNX has no operator; export CostSensitiveForest, on whose trees it stands"
    )
    exact: ClassVar[tuple[str, ...]] = (*CostSensitiveForest.exact, "points", "targets", "codes")
    points: Tensor = buffer()
    targets: Tensor = buffer()
    codes: Tensor = buffer()

    clusters: int = option(default=2, least=1, most=10_000)
    overlap: float = option(default=0.2, least=0)
    tau: float = option(default=1.0, above=0)
    energy: float = option(default=0.9, above=0, most=1)
    width: float = option(default=0.2, above=0)
    sparsity: float = option(default=0.1, least=0)
    attraction: float = option(default=0.5, least=0)
    squared: bool = False
    start: Literal["cluster", "forest"] = "forest"
    rounds: int = option(default=10, least=1)
    tolerance: float = option(default=1e-5, above=0)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, with one leaf and one row until fitted. Raises LDLError."""
        super().build(in_features, labels)
        self.register_buffers(points=torch.zeros(1, in_features).double(), targets=self.leaf_targets.clone())
        self.register_buffer("codes", self._codes(self.targets, self.leaf_values))

    @torch.no_grad()
    def fit(self, rows: Rows, collective: Collective) -> None:
        """Grow the forest and store the training rows; see :meth:`CostSensitiveForest.fit`."""
        super().fit(rows, collective)
        with one_thread():
            self.points = self.map(rows.features)
        self.targets = rows.target.to(torch.float64, copy=True)
        self.codes = self._codes(self.targets, self._values(self.targets, rows.value)).to(torch.float64, copy=True)

    @override
    def describe_buffers(self) -> dict[str, str]:
        mapped = "D" if len(self.landmark) else "F"
        return super().describe_buffers() | {
            "points": f"N {mapped}: finite",
            "targets": "N C: distributions",
            "codes": f"N {self.labels.ndim or len(self.labels)}: finite",
            "rows": "R: 0 <= number < N",
        }

    def forward(self, features: Tensor) -> Tensor:
        """The combined distribution of the neighbours: (..., F) to (..., C), at least float32."""
        return self.predict(features)[0]

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """The combined value of the neighbours, (...,) or (..., 2), which may extrapolate; None for nominal labels."""
        return self.predict(features)[1]

    @torch.no_grad()
    def predict(self, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """``forward`` and ``point_estimate``, which one solution gives."""
        rows = features.reshape(-1, features.shape[-1])
        neighbours = min(len(self.points), len(self.forest.roots) * int(self.forest.sizes.max()))
        step = max(1, FEATURES_AT_ONCE // (self.points.shape[1] * neighbours))
        with torch.autocast(features.device.type, enabled=False):
            results = [self._approximate(block) for block in rows.split(step)]
        distribution, value = (as_rows(torch.cat(blocks), features) for blocks in zip(*results))
        if not self.labels.has_values:
            return distribution, None
        return distribution, value.squeeze(-1) if self.labels.ndim == 1 else value

    @torch.no_grad()
    def evidence(self, features: Tensor) -> Evidence:
        """Return the training rows that approximate one instance (F,), with weights that sum to 1."""
        near, weights, _ = self._weigh(features[None])
        return weigh([f"row {row}" for row in near[0].tolist()], weights[0], self.targets[near[0]])

    def _approximate(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return distributions (B, C) and codes on the scale of the values (B, c)."""
        if not len(features):
            return self.targets[:0], self.codes[:0]
        near, weights, estimate = self._weigh(features)
        combined = (weights.unsqueeze(1) @ self.targets[near]).squeeze(1)
        return onto_simplex(combined), self.from_scale(estimate) if self.labels.has_values else estimate

    def _weigh(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Neighbours and their weights, (B, m) each, 0 where neighbours are filled up, and codes (B, c)."""
        queries, leaves = self.map(features), self.leaves(features)
        near, real = gather_leaves(self.forest, leaves)
        start = None
        if self.start == "forest":
            start = self._codes(self.leaf_targets[leaves].mean(1), self.leaf_values[leaves].mean(1))
        rules = NeighbourWeighting(*(getattr(self, name) for name in NeighbourWeighting._fields))
        settled = SETTLED * float((self.codes.amax(0) - self.codes.amin(0)).max())
        ordered = self.labels.has_values
        weights, estimate = neighbour_weights(
            self.points[near], self.codes[near], real, queries, start, rules, ordered, settled
        )
        return near, weights, estimate

    def _codes(self, targets: Tensor, values: Tensor) -> Tensor:
        """Return the codes by which labels are compared: values on their scale, or the likeliest label, one-hot."""
        if self.labels.has_values:
            return self.to_scale(values)
        return torch.nn.functional.one_hot(targets.argmax(1), targets.shape[1]).to(targets)
