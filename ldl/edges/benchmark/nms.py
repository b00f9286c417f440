"""Non-maximum suppression: what is left of an edge map is the ridges, about one pixel wide."""

from __future__ import annotations

import numpy as np

from ldl.edges.structured.blur import blur
from ldl.methods.forest.compiled import compiled_as_numpy, inlined

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)

SMOOTHING = 4
"""Radius of the triangle blur before the orientation is estimated, in pixels, as published."""
TOLERANCE = 1.01
"""A pixel stays that is at least 1 / 1.01 of its neighbours across the edge: plateaus stay connected."""
BORDER = 5
"""Pixels nearer to the image's border are lowered linearly; there is little to judge an edge by."""


def suppress(edges: np.ndarray, border: int = BORDER, smoothing: int = SMOOTHING) -> np.ndarray:
    """Keep the pixels of an edge map that are maxima across the edge; the others become 0.

    A pixel is compared with the values one pixel away on both sides, interpolated bilinearly.

    Args:
        edges: (H, W), how likely each pixel is an edge.
        border: Width of the frame in which edges are lowered, in pixels.
        smoothing: Radius of the triangle blur before the orientation is estimated, in pixels.

    Returns:
        (H, W) float32, 0 or the value of ``edges`` (lowered in the frame).
    """
    edges = np.ascontiguousarray(edges, np.float32)
    thin = np.zeros_like(edges)
    _keep_maxima(edges, normals(edges, smoothing), thin)
    if border > 0:
        rise = [np.minimum(np.minimum(np.arange(n), np.arange(n)[::-1]) / border, 1) for n in edges.shape]
        thin *= np.minimum(rise[0][:, None], rise[1][None]).astype(np.float32)
    return thin


def normals(edges: np.ndarray, smoothing: int = SMOOTHING) -> np.ndarray:
    """The direction across the edge at each pixel of (H, W) float32: x and y of a unit vector, (2, H, W) float32.

    It is the axis along which the blurred map curves most: an eigenvector of its second derivatives.
    """
    slopes, across = np.empty((2, 2, *edges.shape), np.float32)
    _fill_slopes(blur(edges[None], smoothing)[0], slopes)
    _fill_normals(slopes, across)
    return across


@inlined
def _slope(values: np.ndarray, y: int, x: int, axis: int) -> float:
    """Central difference along y or x; one-sided at the border, 0 along an axis of one pixel."""
    last = values.shape[axis] - 1
    at = y if axis == 0 else x
    before, after = max(at - 1, 0), min(at + 1, last)
    rise = values[after, x] - values[before, x] if axis == 0 else values[y, after] - values[y, before]
    return rise * _HALF if after - before == 2 else rise


@compiled_as_numpy
def _fill_slopes(smooth: np.ndarray, slopes: np.ndarray) -> None:
    for axis in range(2):
        for y in range(smooth.shape[0]):
            for x in range(smooth.shape[1]):
                slopes[axis, y, x] = _slope(smooth, y, x, axis)


@compiled_as_numpy
def _fill_normals(slopes: np.ndarray, across: np.ndarray) -> None:
    _, height, width = slopes.shape
    for y in range(height):
        for x in range(width):
            dyy, dyx = _slope(slopes[0], y, x, 0), _slope(slopes[0], y, x, 1)
            dxx = _slope(slopes[1], y, x, 1)
            # Twice the angle of the axis of the larger eigenvalue has this cosine and sine, but for their length.
            cosine, sine = dxx - dyy, dyx + dyx
            length = np.sqrt(cosine * cosine + sine * sine)
            length, cosine = (length, cosine) if length > _ZERO else (_ONE, _ONE)
            large = np.sqrt((_ONE + abs(cosine) / length) * _HALF)
            small = abs(sine) / ((length + length) * large)
            along_x, along_y = (large, small) if cosine >= _ZERO else (small, large)
            along_y = along_y if sine >= _ZERO else -along_y
            # Where the map curves down, that of the larger magnitude is the other one.
            up = dxx + dyy > _ZERO
            across[0, y, x], across[1, y, x] = (along_x, along_y) if up else (-along_y, along_x)


@compiled_as_numpy
def _keep_maxima(edges: np.ndarray, across: np.ndarray, thin: np.ndarray) -> None:
    height, width = edges.shape
    for y in range(height):
        for x in range(width):
            value = edges[y, x]
            if value <= 0:
                continue
            keep = True
            for side in (-1, 1):
                # Clamped to the map: beyond it the border's value goes on.
                py = min(max(y + side * across[1, y, x], 0.0), height - 1.0)
                px = min(max(x + side * across[0, y, x], 0.0), width - 1.0)
                y0, x0 = min(int(py), max(height - 2, 0)), min(int(px), max(width - 2, 0))
                y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
                wy, wx = py - y0, px - x0
                beside = (1 - wy) * ((1 - wx) * edges[y0, x0] + wx * edges[y0, x1]) + wy * (
                    (1 - wx) * edges[y1, x0] + wx * edges[y1, x1]
                )
                keep &= value * TOLERANCE >= beside
            if keep:
                thin[y, x] = value
