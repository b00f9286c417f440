"""The two penalties of DSNA's approximation, sparsity |z| + attraction |z - anchor|, elementwise."""

from __future__ import annotations

import torch
from torch import Tensor


def shrink(x: Tensor, anchor: Tensor, sparsity: Tensor, attraction: Tensor) -> Tensor:
    """argmin over z of sparsity |z| + attraction |z - anchor| + (z - x)^2 / 2, (B, m); penalties are (B,)."""
    sparsity, attraction = sparsity[:, None], attraction[:, None]
    low, high = anchor.clamp_max(0), anchor.clamp_min(0)
    both = sparsity + attraction
    between = x - anchor.sign() * (sparsity - attraction)
    return (
        torch.minimum(x + both, low)
        + torch.minimum(torch.maximum(between, low), high)
        - low
        + torch.maximum(x - both, high)
        - high
    )


def hold(anchors: Tensor, sparsity: float, attraction: float) -> tuple[Tensor, Tensor]:
    """Middle and reach, (B, m) each, of the pulls that move no weight from where the heavier penalty holds it.

    They are the subdifferential of both penalties at the anchor or at 0.
    """
    middle = min(sparsity, attraction) * anchors.sign() * (1 if attraction >= sparsity else -1)
    both = sparsity + attraction
    return middle, torch.where(anchors == 0, both, max(sparsity, attraction)).to(anchors)
