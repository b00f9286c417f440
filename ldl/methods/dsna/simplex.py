"""Projection onto the simplex."""

from __future__ import annotations

import torch
from torch import Tensor


def onto_simplex(rows: Tensor) -> Tensor:
    """The nearest distributions, by Euclidean distance, of rows (B, C) (Duchi et al. 2008, Figure 1)."""
    descending = rows.sort(dim=1, descending=True).values
    surplus = descending.cumsum(1) - 1
    count = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype)
    kept = (descending * count > surplus).sum(1, keepdim=True)
    kept = kept.clamp_min(1)  # a row of NaN stays one
    return (rows - surplus.gather(1, kept - 1) / kept).clamp_min(0)
