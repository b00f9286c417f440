"""Label embedding by multi-scale locality preservation (Peng, Tao & Geng, IJCAI 2018)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.embedding import inverse_root, nearest, neighbour_graphs, preserve, rbf
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import as_rows, traced
from ldl.methods.training_rows import check_rows
from ldl.options import buffer, option, options


@options
class MSLP(FittedHead):
    """Multi-scale locality preservation: a projection of the features in which label distributions are neighbours.

    Pairs that are close in features and in labels are drawn together. Pairs that are close in features and far in
    labels are pushed apart (``ldl.methods.embedding``). The projection V solves the generalised eigenproblem

        (X^T (beta M+ - (1 - beta) M-) X + ridge I) v = eta (X^T D+ X) v

    for the smallest eta. A prediction is the mean distribution of the ``neighbours`` nearest training instances in
    the embedding V^T x. Neighbour graphs are sparse: memory grows linearly with the training set.

    Args:
        positives: Number k+ of neighbours that an instance is drawn to.
        spread: Factor alpha >= 1. These k+ are nearest in labels among the ``spread * positives`` nearest in features.
        negatives: Number k-. An instance is pushed from rows that are among the k- nearest in features and among the
            k- farthest in labels, of the same ``spread * positives``.
        sigma: Scale of the weights exp(-distance / sigma) of drawn pairs, as a multiple of the pairs' mean distance
            in labels.
        beta: Weight of drawing against pushing, in [0, 1].
        ridge: Ridge lambda, as a share of the mean of the diagonal of X^T D+ X, so that it has no unit.
        ratio: Dimensions of the embedding, as a multiple of the number of labels; the talk uses 0.1 to 1.
        metric: Metric of the embedding. ``degree`` (the talk's) is V^T X^T D+ X V = I: all dimensions count alike, and
            too many dimensions hurt. ``commute`` divides each dimension by the root of its cost, which gives commute
            times of a random walk on the graph of drawn pairs.
        centred: Whether to subtract the mean of the features; the talk does not.
        neighbours: Number of neighbours k of the decoder.
        kernel: ``linear``, or ``rbf``: the features become exp(-gamma ||x - z||^2) of ``landmarks`` training
            instances z, orthogonalised (Nystrom); with as many landmarks as instances this is the kernel form.
        gamma: Parameter of the kernel; None uses 1 / (F var(X)), like scikit-learn's ``scale``.
        landmarks: Largest number of landmarks, drawn at random from a fixed seed.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import MSLP
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(MSLP(neighbours=5)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    exact: ClassVar[tuple[str, ...]] = ("projection", "centre", "landmark", "root", "width", "points", "distributions")
    projection: Tensor = buffer()
    centre: Tensor = buffer()
    landmark: Tensor = buffer()
    root: Tensor = buffer()
    width: Tensor = buffer()
    points: Tensor = buffer()
    distributions: Tensor = buffer()

    positives: int = option(default=20, least=1)
    spread: float = option(default=2.0, least=1)
    negatives: int = option(default=10, least=0)
    sigma: float = option(default=1.0, above=0)
    beta: float = option(default=0.8, least=0, most=1)
    ridge: float = option(default=0.1, least=0)
    ratio: float = option(default=1.0, above=0)
    metric: Literal["degree", "commute"] = "degree"
    centred: bool = True
    neighbours: int = option(default=10, least=1)
    kernel: Literal["linear", "rbf"] = "linear"
    gamma: float | None = option(default=None, above=0, null="1 / (F var(X))")
    landmarks: int = option(default=1000, least=1)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, with one uniform instance until fitted. Raises LDLError."""
        super().build(in_features, labels)
        self.register_buffers(projection=torch.zeros(in_features, 1), centre=torch.zeros(in_features))
        self.register_buffers(landmark=torch.zeros(0, in_features), root=torch.zeros(0, 0), width=torch.ones(()))
        self.register_buffers(points=torch.zeros(1, 1), distributions=torch.full((1, len(labels)), 1 / len(labels)))

    @torch.no_grad()
    def fit(self, rows: Rows, collective: Collective) -> None:
        """Fit on the rows. Features that do not vary give the mean distribution.

        Raises LDLError for a bad row, a gamma outside float32, or a dimension without cost for ``commute``.
        """
        check_rows(type(self).__name__, rows)
        features, target = rows.features.float(), rows.target.float()
        if self.kernel == "rbf":
            self._choose_landmarks(features)
        mapped = self._map(features).double()
        centre = mapped.mean(0)
        graphs = neighbour_graphs(features, target, self.positives, self.spread, self.negatives, self.sigma)
        dimensions = max(1, round(self.ratio * target.shape[1]))
        centred = (mapped - centre).cpu().numpy()
        inputs = centred if self.centred else mapped.cpu().numpy()
        vectors, cost = preserve(inputs, *graphs, self.beta, self.ridge, dimensions)
        if self.metric == "commute" and not (cost > 0).all():
            raise LDLError(
                f"MSLP.metric 'commute' divides by the cost of each dimension, and a cost is {cost.min():.3g}; give "
                f"a ridge above {self.ridge}, or take 'degree'"
            )
        projection = torch.from_numpy(vectors / np.sqrt(cost) if self.metric == "commute" else vectors)
        # The scale of V^T X^T D+ X V = I is tiny, so normalise the embedding.
        spread = (torch.from_numpy(centred) @ projection).square().mean().sqrt() if projection.numel() else 0.0
        self.centre = centre.to(features)
        self.projection = (projection / spread).to(features) if spread else torch.zeros_like(mapped[:1]).T.to(features)
        self.points = self.embed(features) if spread else self.projection.new_zeros(1, 1)
        self.distributions = target.clone() if spread else target.mean(0, keepdim=True)

    @override
    def describe_buffers(self) -> dict[str, str]:
        mapped, root = ("D", "Z D") if len(self.landmark) else ("F", "Z Z")
        return {
            "landmark": "Z F: finite",
            "root": f"{root}: finite",
            "width": ": finite",
            "centre": f"{mapped}: finite",
            "projection": f"{mapped} E: finite",
            "points": "N E: finite",
            "distributions": "N C: distributions",
        }

    def embed(self, features: Tensor) -> Tensor:
        """Embed features (..., F) as (..., l), in the precision of the weights also under autocast."""
        with torch.autocast(features.device.type, enabled=False):
            return (self._map(features.to(self.centre.dtype)) - self.centre) @ self.projection

    def forward(self, features: Tensor) -> Tensor:
        """Return distributions (..., C) of features (..., F), at least float32."""
        rows = self.embed(features.reshape(-1, features.shape[-1]))
        neighbours = nearest(rows, self.points, min(self.neighbours, len(self.points)))
        return as_rows(self.distributions[neighbours].mean(1), features)

    def _choose_landmarks(self, features: Tensor) -> None:
        generator = torch.Generator().manual_seed(0)
        chosen = torch.randperm(len(features), generator=generator)[: self.landmarks].to(features.device)
        gamma = self.gamma
        if gamma is None:
            variance = float(features.double().var(unbiased=False))
            gamma = 1 / (features.shape[1] * variance) if variance else 1.0
        least = torch.finfo(torch.float32).tiny
        if not least <= gamma <= 1 / least:
            raise LDLError(
                f"MSLP.gamma {gamma:g} is not in {least:.2g}..{1 / least:.2g}, beyond which float32 ends; scale the "
                "features, or give another gamma"
            )
        self.width = features.new_tensor(gamma)
        self.landmark = features[chosen]
        self.root = inverse_root(self._similarity(self.landmark).double(), 1e-6).to(features)

    def _similarity(self, rows: Tensor) -> Tensor:
        if traced():
            return rbf(rows, self.landmark, self.width)
        # As in rbf: of many rows cdist computes distances from dot products.
        centre = self.landmark.mean(0)
        return (-self.width * torch.cdist(rows - centre, self.landmark - centre).square()).exp()

    def _map(self, rows: Tensor) -> Tensor:
        return self._similarity(rows) @ self.root if len(self.landmark) else rows
