"""Eigenvectors of Gram matrices, of which many eigenvalues may be 0."""

from __future__ import annotations

import torch
from torch import Tensor


def eigh(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (B, n), rising, and eigenvectors (B, n, n) of symmetric matrices (B, n, n).

    As ``torch.linalg.eigh``. Where that does not converge in single precision, as it may where many eigenvalues are 0
    but for rounding, in double precision. Raises torch's LinAlgError where it does not converge there either.
    """
    try:
        values, vectors = torch.linalg.eigh(matrices)
    except torch.linalg.LinAlgError:
        values, vectors = (part.to(matrices) for part in torch.linalg.eigh(matrices.double()))
    return values, vectors
