"""Embeddings in which neighbours decode: MSLP's, and those of the baselines of its paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.sparse import csr_array
from torch import Tensor

from benchmarks.common.data import fit_head
from ldl.heads import MSLP
from ldl.methods.embedding import inverse_root, nearest, neighbour_graphs, preserve, rbf, varying_directions

NEAR = 20
"""Neighbours in LPP and NPE, equal to MSLP's default k+."""
LANDMARKS = 500
ROUNDING = 1e-5
"""Directions of the labels below this share of the largest are rounding errors, since distributions sum to 1."""
MIXING = 1e-3
"""Ridge of NPE's mixtures as a share of the trace, which makes them unique (Roweis & Saul)."""


@dataclass(frozen=True)
class Embedded:
    """Training rows in an embedding, among which the neighbours of other rows are found.

    Attributes:
        points: (N, l).
        distributions: (N, C).
        embed: Features (n, F) to (n, l).
    """

    points: Tensor
    distributions: Tensor
    embed: Callable[[Tensor], Tensor]

    def predict(self, features: Tensor, dimensions: int | None, neighbours: Sequence[int]) -> dict[int, Tensor]:
        """Return for each k the mean distribution of the k nearest rows, (n, C), in the first or all dimensions."""
        most = min(max(neighbours), len(self.points))
        found = nearest(self.embed(features)[:, :dimensions], self.points[:, :dimensions], most)
        sums = self.distributions[found].double().cumsum(1)
        return {k: sums[:, min(k, most) - 1] / min(k, most) for k in neighbours}


Embedder = Callable[..., Embedded]
"""Function of features (N, F), distributions (N, C), most dimensions, and options."""


def whole(features: Tensor, target: Tensor, dimensions: int) -> Embedded:
    """Return the features themselves: AA-kNN."""
    return Embedded(features, target, lambda rows: rows)


def mslp(features: Tensor, target: Tensor, dimensions: int, **options: Any) -> Embedded:
    """Return the embedding of the head with ``options``."""
    head = fit_head(MSLP(**options, ratio=dimensions / target.shape[1]), features, target)
    return Embedded(head.points, head.distributions, head.embed)


Project = Callable[[np.ndarray, np.ndarray, int, float], np.ndarray]
"""Function of centred rows (N, D), distributions (N, C), dimensions and a ridge. Returns (D, l)."""


def projected(project: Project) -> Embedder:
    """Return an embedder that projects the features or, if ``kernel`` is ``rbf``, components of their kernel.

    Landmarks and width of the kernel are those of the head.
    """

    def embedder(
        features: Tensor, target: Tensor, dimensions: int, /, kernel: str = "linear", ridge: float = 0.1
    ) -> Embedded:
        mapping = kernel_components(features) if kernel == "rbf" else Tensor.double
        rows = mapping(features)
        centre = rows.mean(0)
        found = torch.from_numpy(project((rows - centre).numpy(), target.double().numpy(), dimensions, ridge))
        return Embedded((rows - centre) @ found, target, lambda others: (mapping(others) - centre) @ found)

    return embedder


def kernel_components(features: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a map from rows to components of an rbf kernel, by landmarks among training rows (N, F) (Nystrom)."""
    chosen = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))[:LANDMARKS]
    landmarks = features[chosen].double()
    gamma = 1 / (features.shape[1] * float(features.double().var(unbiased=False)))
    root = inverse_root(rbf(landmarks, landmarks, gamma), 1e-6)
    return lambda rows: rbf(rows.double(), landmarks, gamma) @ root


def pca(rows: np.ndarray, target: np.ndarray, dimensions: int, ridge: float) -> np.ndarray:
    """Return the directions of most variance, which do not depend on the ridge."""
    return eigh(-rows.T @ rows)[1][:, :dimensions]


def cca(rows: np.ndarray, target: np.ndarray, dimensions: int, ridge: float) -> np.ndarray:
    """Return the directions of most correlation with mixtures of the labels (Hotelling 1936), at most C - 1."""
    labels = target - target.mean(0)
    shared = rows.T @ (labels @ np.linalg.pinv(labels, rcond=ROUNDING))
    return _least(rows, -shared @ rows, dimensions, ridge)


def lpp(rows: np.ndarray, target: np.ndarray, dimensions: int, ridge: float) -> np.ndarray:
    """Return the locality preserving projection (He & Niyogi 2003), in which all neighbours weigh the same."""
    graphs = neighbour_graphs(torch.from_numpy(rows), torch.zeros(len(rows), 1), NEAR, 1.0, 0, 1.0)
    return preserve(rows, *graphs, 1.0, ridge, dimensions)[0]


def npe(rows: np.ndarray, target: np.ndarray, dimensions: int, ridge: float) -> np.ndarray:
    """Return the neighbourhood preserving embedding (He et al. 2005): rows stay mixtures of their neighbours."""
    points = torch.from_numpy(rows)
    near = nearest(points, points, min(NEAR, len(rows) - 1), exclude_self=True)
    apart = torch.stack([points[others] - own for own, others in zip(points, near)])
    gram = apart @ apart.mT
    gram += MIXING * gram.diagonal(dim1=1, dim2=2).sum(1)[:, None, None] * torch.eye(near.shape[1])
    shares = torch.linalg.solve(gram, torch.ones(*near.shape, 1, dtype=torch.float64))[..., 0]
    shares /= shares.sum(1, keepdim=True)
    starts = np.arange(len(rows) + 1) * near.shape[1]
    mixtures = csr_array((shares.flatten().numpy(), near.flatten().numpy(), starts), shape=(len(rows), len(rows)))
    left = rows - mixtures @ rows
    return _least(rows, left.T @ left, dimensions, ridge)


def _least(rows: np.ndarray, left: np.ndarray, dimensions: int, ridge: float) -> np.ndarray:
    """Return V (D, l) of least trace V^T (left + ridge I) V with V^T X^T X V = I, in the directions of X."""
    basis = varying_directions(rows)
    points = rows @ basis
    right = points.T @ points
    penalty = ridge * right.trace() / len(right) * np.eye(len(right))
    most = min(dimensions, len(right)) - 1
    return basis @ eigh(basis.T @ left @ basis + penalty, right, subset_by_index=[0, most])[1]
