"""Multi-scale locality preservation (Peng, Tao & Geng 2018): neighbour graphs, and the projection that keeps them."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.sparse import coo_array, csr_array
from torch import Tensor

from ldl.methods.embedding.neighbours import nearest

PART = 2**24
"""Numbers that are held at a time."""
RANK = 1e-8
"""Directions whose variance is a smaller share of the largest count as constant."""


def label_distances(target: Tensor, near: Tensor) -> Tensor:
    """Euclidean distances (N, m) between the distributions (N, C) of instances and of their neighbours (N, m)."""
    step = max(1, PART // (near.shape[1] * target.shape[1] + 1))
    pairs = zip(target.split(step), near.split(step))
    return torch.cat([(own[:, None] - target[others]).norm(dim=-1) for own, others in pairs])


def neighbour_graphs(
    features: Tensor, target: Tensor, positives: int, spread: float, negatives: int, sigma: float
) -> tuple[csr_array, csr_array]:
    """The symmetric, sparse weights W+ of pairs that are drawn together and W- of pairs that are pushed apart.

    Args:
        features: (N, F).
        target: (N, C) label distributions.
        positives: k+, see ``heads.mslp.MSLP``.
        spread: alpha.
        negatives: k-.
        sigma: As a multiple of the mean distance in labels of drawn pairs.

    Returns:
        Two (N, N) matrices, float64. Where the talk prints Nei_y in the definition of hetero-neighbours we read
        Nei_x: close in features, far in labels.
    """
    count = min(len(features) - 1, round(spread * positives))
    near = nearest(features, features, count, exclude_self=True)
    distances = label_distances(target, near)
    close = distances.topk(min(positives, count), largest=False).indices
    drawn = distances.gather(1, close)
    scale = sigma * float(drawn.double().mean()) if drawn.numel() else 0.0
    weights = (-drawn.double() / scale).exp() if scale > 0 else torch.ones_like(drawn, dtype=torch.float64)
    few = min(negatives, count)
    far = torch.zeros_like(near, dtype=torch.bool).scatter_(1, distances.topk(few).indices, True)
    # Neighbours come nearest first.
    rows, columns = far[:, :few].nonzero(as_tuple=True)
    pushed = _symmetric(rows, near[rows, columns], torch.ones(len(rows), dtype=torch.float64), len(features))
    own = torch.arange(len(features), device=near.device)[:, None].expand_as(close)
    return _symmetric(own.flatten(), near.gather(1, close).flatten(), weights.flatten(), len(features)), pushed


def _symmetric(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> csr_array:
    places = (rows.cpu().numpy(), columns.cpu().numpy())
    graph = coo_array((weights.cpu().numpy(), places), shape=(size, size)).tocsr()
    return graph.maximum(graph.T)


def varying_directions(features: np.ndarray) -> np.ndarray:
    """An orthonormal basis (F, r) of the directions in which features (N, F), centred or not, differ from 0."""
    wide = features.shape[1] > features.shape[0]
    values, vectors = eigh(features @ features.T if wide else features.T @ features)
    kept = (values > RANK * max(values[-1], 0.0)) & (values > 0)
    return features.T @ (vectors[:, kept] / np.sqrt(values[kept])) if wide else vectors[:, kept]


def preserve(
    features: np.ndarray, drawn: csr_array, pushed: csr_array, beta: float, ridge: float, dimensions: int
) -> tuple[np.ndarray, np.ndarray]:
    """The projection V (F, l) with the smallest sum of weighted squared distances, V^T X^T D+ X V = I.

    Also each dimension's cost without pushing, (l,): the diagonal of V^T (X^T (D+ - W+) X + ridge I) V, its eta where
    beta is 1.

    Args:
        features: (N, F) float64, centred or not: distances are the same, V^T X^T D+ X V is not.
        drawn: W+ (N, N).
        pushed: W-.
        beta: Weight of W+ against W-, in [0, 1].
        ridge: Penalty on V, as a share of the mean of the diagonal of X^T D+ X.
        dimensions: l; less where the features vary in fewer directions.
    """
    basis = varying_directions(features)
    if not basis.shape[1]:
        return np.zeros((features.shape[1], 0)), np.zeros(0)
    points = features @ basis
    right = points.T @ (drawn.sum(1)[:, None] * points)
    values, vectors = eigh(right)
    if not (degree := values > RANK * max(values[-1], 0.0)).all():
        # Rows that no near pair holds have directions of their own, in which V^T X^T D+ X V is 0 whatever V is.
        basis = basis @ vectors[:, degree]
        if not basis.shape[1]:
            return np.zeros((features.shape[1], 0)), np.zeros(0)
        points = features @ basis
        right = points.T @ (drawn.sum(1)[:, None] * points)
    drawing = right - points.T @ (drawn @ points)
    pushing = points.T @ (pushed.sum(1)[:, None] * points) - points.T @ (pushed @ points)
    penalty = ridge * right.trace() / len(right) * np.eye(len(right))
    left = beta * drawing - (1 - beta) * pushing + penalty
    most = min(dimensions, len(right)) - 1
    _, vectors = eigh(_halves(left), _halves(right), subset_by_index=[0, most])
    return basis @ vectors, (vectors * ((drawing + penalty) @ vectors)).sum(0)


def _halves(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
