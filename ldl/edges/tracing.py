"""Votes traced: what a model learns beside its own ridges is "no edge", so that its edge maps are thin as they come.

Annotators who mean the same edge draw it pixels apart, and a model that learns their votes pixel by pixel answers with
a band. The tracing loss of Huan et al. ("Unmixing convolutional features for crisp edge detection", PAMI 2022) asks
that the mass around a line that was drawn lies on it, wherever that is by chance. Here the model itself says where in
the band the line runs, by the ridges of its prediction, and the votes say how likely it is there: the target stays a
label distribution at every pixel, and every head keeps the loss it has.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.thinning import widen
from ldl.head import Head


@torch.no_grad()
def trace(head: Head, features: Tensor, target: Tensor, reach: float) -> Tensor:
    """Targets that are left on the ridges of a head's prediction; the pixels beside them become the first label.

    Ridges are the maxima of the mass of all labels but the first (:func:`ldl.edges.benchmark.nms.suppress`). Pixels
    without a ridge within reach keep their target, so that edges that were not seen yet are learned.

    Args:
        head: Gives the prediction, as it trains.
        features: (B, H, W, F); of several outputs, (B, S, H, W, F), the first is looked at.
        target: (B, H, W, C).
        reach: How far from a ridge pixels lie beside it, in pixels.

    Returns:
        (B, H, W, C).
    """
    finest = features if features.ndim == target.ndim else features[:, 0]
    strength = 1 - head(finest)[..., 0].float().cpu().numpy()
    ridges = [suppress(one, border=0) > 0 for one in strength]
    off = torch.from_numpy(np.stack([widen(ridge, reach) & ~ridge for ridge in ridges]))
    ground = torch.zeros_like(target[0, 0, 0])
    ground[0] = 1
    return torch.where(off[..., None].to(target.device), ground, target)
