"""Label embedding: exact nearest neighbours, kernels as features, and multi-scale locality preservation.

The neighbour graphs and the projection that preserves them are from Peng, Tao & Geng 2018.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import eigh as scipy_eigh
from scipy.sparse import coo_array, csr_array
from torch import Tensor

from ldl.methods.torch_utils import eigh, pick, traced

DISTANCES_AT_ONCE = 2**24
"""Distances that are held at a time."""
GRAIN = 2.0**-30
"""Share of the squared norms below which a difference of squared distances counts as 0."""
COARSE = 2.0**-20
"""Share of the squared distance above which the grain hides the nearer point."""
SPARE = 16
"""Additional points whose distances a graph computes by differences."""


def nearest(queries: Tensor, points: Tensor, k: int, exclude_self: bool = False) -> Tensor:
    """Return the ``k`` nearest points of each query by Euclidean distance, nearest first: (B, k), int64.

    Ties depend only on the points and the query, not on the other queries.

    Args:
        queries: (B, F).
        points: (N, F), N at least k, or k + 1 with ``exclude_self``.
        k: Number of neighbours.
        exclude_self: Whether the queries are the points, and none is its own neighbour.
    """
    with torch.autocast(points.device.type, enabled=False):  # 16-bit distances find other neighbours
        return _nearest(queries.double(), points.double(), k, exclude_self)


def _nearest(queries: Tensor, points: Tensor, k: int, exclude_self: bool) -> Tensor:
    # Distances come from dot products, whose rounding error grows with the distance from the origin.
    centre = points.mean(0)
    centred = points - centre
    squares = centred.square().sum(1)
    if traced():
        likely = min(k + SPARE, len(points))
        distances, rounding = _distances(queries - centre, centred, squares)
        candidates = (distances - rounding).topk(likely, largest=False).indices.sort(1).values
        measured = (queries[:, None] - pick(points, candidates)).square().sum(2)
        return candidates.gather(1, measured.topk(k, largest=False).indices)
    neighbours = torch.empty(len(queries), k, dtype=torch.int64, device=points.device)
    step = max(1, DISTANCES_AT_ONCE // len(points))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        row = torch.arange(start, start + len(block), device=points.device)[:, None]
        distances, grain = _distances(block - centre, centred, squares)
        if exclude_self:
            distances.scatter_(1, row, torch.inf)
        nearby = distances.topk(k, largest=False)
        neighbours[start : start + step] = nearby.indices
        coarse = (grain.gather(1, nearby.indices[:, -1:]) > COARSE * nearby.values[:, -1:]).any(1)
        if bool(coarse.any()):
            distances = torch.cdist(block[coarse], points, compute_mode="donot_use_mm_for_euclid_dist")
            if exclude_self:
                distances.scatter_(1, row[coarse], torch.inf)
            neighbours[start : start + step][coarse] = distances.argsort(dim=1, stable=True)[:, :k]
    return neighbours


def _distances(queries: Tensor, points: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
    """Return squared distances (B, N), rounded to multiples of their grains, and the grains.

    Without rounding, the last bits would depend on the shape of the matrix product.
    """
    sums = squares + queries.square().sum(1, keepdim=True)
    grain = (GRAIN * sums).clamp_min(torch.finfo(sums.dtype).tiny)
    return ((sums - 2 * queries @ points.T) / grain).round() * grain, grain


def rbf(rows: Tensor, landmarks: Tensor, gamma: Tensor | float) -> Tensor:
    """Return exp(-gamma ||x - z||^2) for rows x (..., F) and landmarks z (m, F): (..., m)."""
    # Distances come from dot products, whose rounding error grows with the distance from the origin.
    centre = landmarks.mean(0)
    rows, landmarks = rows - centre, landmarks - centre
    squares = rows.square().sum(-1, keepdim=True) + landmarks.square().sum(1) - 2 * rows @ landmarks.T
    return (-gamma * squares.clamp_min(0)).exp()


def inverse_root(similarity: Tensor, rank: float = 1e-8) -> Tensor:
    """Return R (m, r) with R^T S R = I for a kernel matrix S (m, m) (Nystrom).

    Directions with eigenvalues below ``rank`` times the largest are dropped.
    """
    values, vectors = eigh(similarity)
    kept = values > rank * values[-1]
    return vectors[:, kept] / values[kept].sqrt()


LEAST_VARIANCE_SHARE = 1e-8
"""Share of the largest variance below which a direction counts as constant."""


def _label_distances(target: Tensor, near: Tensor) -> Tensor:
    """Return Euclidean distances (N, m) between the distributions (N, C) of instances and their neighbours (N, m)."""
    step = max(1, DISTANCES_AT_ONCE // (near.shape[1] * target.shape[1] + 1))
    pairs = zip(target.split(step), near.split(step))
    return torch.cat([(targets[:, None] - target[others]).norm(dim=-1) for targets, others in pairs])


def neighbour_graphs(
    features: Tensor, target: Tensor, positives: int, spread: float, negatives: int, sigma: float
) -> tuple[csr_array, csr_array]:
    """Return symmetric, sparse weights W+ of pairs that are drawn together and W- of pairs that are pushed apart.

    Args:
        features: (N, F).
        target: (N, C) label distributions.
        positives: k+, see ``heads.mslp.MSLP``.
        spread: alpha.
        negatives: k-.
        sigma: Multiple of the mean label distance of drawn pairs.

    Returns:
        Two (N, N) matrices, float64. In the definition of hetero-neighbours, the talk prints Nei_y; this code reads
        Nei_x: close in features, far in labels.
    """
    count = min(len(features) - 1, round(spread * positives))
    near = nearest(features, features, count, exclude_self=True)
    distances = _label_distances(target, near)
    close = distances.topk(min(positives, count), largest=False).indices
    drawn = distances.gather(1, close)
    scale = sigma * float(drawn.double().mean()) if drawn.numel() else 0.0
    weights = (-drawn.double() / scale).exp() if scale > 0 else torch.ones_like(drawn, dtype=torch.float64)
    few = min(negatives, count)
    far = torch.zeros_like(near, dtype=torch.bool).scatter_(1, distances.topk(few).indices, True)
    # Neighbours are sorted, nearest first.
    rows, columns = far[:, :few].nonzero(as_tuple=True)
    pushed = _symmetric(rows, near[rows, columns], torch.ones(len(rows), dtype=torch.float64), len(features))
    rows = torch.arange(len(features), device=near.device)[:, None].expand_as(close)
    return _symmetric(rows.flatten(), near.gather(1, close).flatten(), weights.flatten(), len(features)), pushed


def _symmetric(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> csr_array:
    positions = (rows.cpu().numpy(), columns.cpu().numpy())
    graph = coo_array((weights.cpu().numpy(), positions), shape=(size, size)).tocsr()
    return graph.maximum(graph.T)


def varying_directions(features: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (F, r) of the directions in which features (N, F), centred or not, differ from 0."""
    wide = features.shape[1] > features.shape[0]
    values, vectors = scipy_eigh(features @ features.T if wide else features.T @ features)
    kept = (values > LEAST_VARIANCE_SHARE * max(values[-1], 0.0)) & (values > 0)
    return features.T @ (vectors[:, kept] / np.sqrt(values[kept])) if wide else vectors[:, kept]


def preserve(
    features: np.ndarray, drawn: csr_array, pushed: csr_array, beta: float, ridge: float, dimensions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the projection V (F, l) with the smallest sum of weighted squared distances, V^T X^T D+ X V = I.

    Also return the cost (l,) of each dimension without pushing: the diagonal of V^T (X^T (D+ - W+) X + ridge I) V,
    which is its eta for a beta of 1.

    Args:
        features: (N, F) float64, centred or not: distances are equal, V^T X^T D+ X V is not.
        drawn: W+ (N, N).
        pushed: W-.
        beta: Weight of W+ against W-, in [0, 1].
        ridge: Penalty on V, as a share of the mean of the diagonal of X^T D+ X.
        dimensions: l; at most the number of directions in which the features vary.
    """
    basis = varying_directions(features)
    if not basis.shape[1]:
        return np.zeros((features.shape[1], 0)), np.zeros(0)
    points = features @ basis
    right = points.T @ (drawn.sum(1)[:, None] * points)
    values, vectors = scipy_eigh(right)
    if not (degree := values > LEAST_VARIANCE_SHARE * max(values[-1], 0.0)).all():
        # Rows without a near pair have directions of their own, in which V^T X^T D+ X V is 0 for every V.
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
    _, vectors = scipy_eigh(_halves(left), _halves(right), subset_by_index=[0, most])
    return basis @ vectors, (vectors * ((drawing + penalty) @ vectors)).sum(0)


def _halves(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
