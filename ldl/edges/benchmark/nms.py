"""Non-maximum suppression: what is left of an edge map is the ridges, about one pixel wide."""

from __future__ import annotations

import numpy as np
import torch

from ldl.edges.structured.channels import blur
from ldl.methods.forest.compiled import compiled

SMOOTHING = 4
"""Radius of the triangle blur before the orientation is estimated, in pixels."""
TOLERANCE = 1.01
"""A pixel stays that is at least 1 / 1.01 of its neighbours across the edge: plateaus stay connected."""
BORDER = 5
"""Pixels nearer to the image's border are lowered linearly; there is little to judge an edge by."""


def suppress(edges: np.ndarray, border: int = BORDER) -> np.ndarray:
    """Keep the pixels of an edge map that are maxima across the edge; the others become 0.

    A pixel is compared with the values one pixel away on both sides, interpolated bilinearly.

    Args:
        edges: (H, W), how likely each pixel is an edge.
        border: Width of the frame in which edges are lowered, in pixels.

    Returns:
        (H, W) float32, 0 or the value of ``edges`` (lowered in the frame).
    """
    edges = np.ascontiguousarray(edges, np.float32)
    thin = np.zeros_like(edges)
    _keep_maxima(edges, normals(edges), np.float32(TOLERANCE), thin)
    if border > 0:
        rise = [np.minimum(np.minimum(np.arange(n), np.arange(n)[::-1]) / border, 1) for n in edges.shape]
        thin *= np.minimum(rise[0][:, None], rise[1][None]).astype(np.float32)
    return thin


def normals(edges: np.ndarray) -> np.ndarray:
    """The direction across the edge at each pixel of (H, W) float32: angle from the x axis, radians, float32.

    It is the axis along which the blurred map curves most: an eigenvector of its second derivatives.
    """
    smooth = blur(torch.from_numpy(edges)[None], SMOOTHING)[0].numpy()
    dy, dx = _gradient(smooth)
    (dyy, dyx), dxx = _gradient(dy), _gradient(dx)[1]
    # The axis of the larger eigenvalue; that of the larger magnitude is the other one where the map curves down.
    axis = 0.5 * np.arctan2(2 * dyx, dxx - dyy)
    return np.where(dxx + dyy > 0, axis, axis + np.pi / 2).astype(np.float32)


def _gradient(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Central differences along y and x; one-sided at the border, 0 along an axis of one pixel."""
    down, right = (np.gradient(values, axis=a) if values.shape[a] > 1 else np.zeros_like(values) for a in range(2))
    return down, right


@compiled
def _keep_maxima(edges: np.ndarray, angle: np.ndarray, tolerance: float, thin: np.ndarray) -> None:
    height, width = edges.shape
    for y in range(height):
        for x in range(width):
            value = edges[y, x]
            if value <= 0:
                continue
            dx, dy = np.cos(angle[y, x]), np.sin(angle[y, x])
            keep = True
            for side in (-1, 1):
                # Clamped to the map: beyond it the border's value goes on.
                py = min(max(np.float32(y) + side * dy, np.float32(0)), np.float32(height - 1))
                px = min(max(np.float32(x) + side * dx, np.float32(0)), np.float32(width - 1))
                y0, x0 = min(int(py), max(height - 2, 0)), min(int(px), max(width - 2, 0))
                y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
                wy, wx = py - y0, px - x0
                across = (1 - wy) * ((1 - wx) * edges[y0, x0] + wx * edges[y0, x1]) + wy * (
                    (1 - wx) * edges[y1, x0] + wx * edges[y1, x1]
                )
                if value * tolerance < across:
                    keep = False
            if keep:
                thin[y, x] = value
