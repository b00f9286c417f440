"""Kernels as features: landmarks, orthogonalised (Nystrom)."""

from __future__ import annotations

from torch import Tensor

from ldl.methods.spectrum import eigh


def rbf(rows: Tensor, landmarks: Tensor, gamma: Tensor | float) -> Tensor:
    """exp(-gamma ||x - z||^2) of rows (..., F) and landmarks (m, F): (..., m)."""
    # Distances are computed from dot products, whose rounding grows with the distance from the origin.
    centre = landmarks.mean(0)
    rows, landmarks = rows - centre, landmarks - centre
    squares = rows.square().sum(-1, keepdim=True) + landmarks.square().sum(1) - 2 * rows @ landmarks.T
    return (-gamma * squares.clamp_min(0)).exp()


def inverse_root(similarity: Tensor, rank: float = 1e-8) -> Tensor:
    """R (m, r) of a kernel matrix S (m, m) with R^T S R = I; directions below ``rank`` of the largest are left out."""
    values, vectors = eigh(similarity)
    kept = values > rank * values[-1]
    return vectors[:, kept] / values[kept].sqrt()
