"""Eigenvectors of Gram matrices, of which many eigenvalues may be 0."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def eigh(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (..., n), rising, and eigenvectors (..., n, n) of symmetric matrices: ``torch.linalg.eigh``.

    On processors torch asks MKL, which may not converge where most rows are 0; then NumPy is asked, in double
    precision.
    """
    try:
        values, vectors = torch.linalg.eigh(matrices)
    except torch.linalg.LinAlgError:
        found = np.linalg.eigh(matrices.double().cpu().numpy())
        values, vectors = (torch.from_numpy(part).to(matrices) for part in found)
    return values, vectors
