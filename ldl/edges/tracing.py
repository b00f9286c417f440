"""Crisp targets: pixels beside the ridges of a model's prediction become "no edge", so that its edge maps are thin.

Annotators of the same edge draw it pixels apart, so a model of their votes at each pixel predicts a band. The tracing
loss of Huan et al. ("Unmixing convolutional features for crisp edge detection", PAMI 2022) pulls the mass around a line
onto the line, wherever the annotator drew it. Here the ridges of the model's own prediction give the
position of the line in the band, and the votes give its probability. The target remains a label distribution at every
pixel, so every head keeps its loss.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ldl.edges.benchmark.thinning import suppress, widen
from ldl.head import Head


@torch.no_grad()
def trace(head: Head, features: Tensor, target: Tensor, reach: float) -> Tensor:
    """Return targets on the ridges of a head's prediction; pixels beside the ridges get the first label.

    Ridges are the maxima of the mass of all labels but the first (:func:`ldl.edges.benchmark.thinning.suppress`).
    Pixels without a ridge within reach keep their target, so that undetected edges are learned.

    Args:
        head: Predicts, in its current state of training.
        features: (B, H, W, F); of several outputs, (B, S, H, W, F), the first is used.
        target: (B, H, W, C).
        reach: Maximum distance from a ridge of the pixels beside it, in pixels.

    Returns:
        (B, H, W, C).
    """
    finest = features if features.ndim == target.ndim else features[:, 0]
    strength = 1 - head(finest)[..., 0].float().cpu().numpy()
    ridges = [suppress(edge_map, border=0) > 0 for edge_map in strength]
    off = torch.from_numpy(np.stack([widen(ridge, reach) & ~ridge for ridge in ridges]))
    ground = torch.zeros_like(target[0, 0, 0])
    ground[0] = 1
    return torch.where(off[..., None].to(target.device), ground, target)
