"""Thin edge lines: non-maximum suppression, thinning of binary maps and widening of lines."""

from __future__ import annotations

import cv2
import numpy as np

from ldl.edges.structured.channels import blur
from ldl.methods.numba_kernels import compiled, compiled_as_numpy, inlined

SMOOTHING = 4
"""Radius of the triangle blur before the orientation is estimated, in pixels, as published."""
TOLERANCE = 1.01
"""A pixel is kept if it is at least 1 / 1.01 of its neighbours across the edge, so that plateaus stay connected."""
BORDER = 5
"""Width of the frame in which edges are lowered linearly, in pixels; they are unreliable there."""
_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)


def suppress(edges: np.ndarray, border: int = BORDER, smoothing: int = SMOOTHING) -> np.ndarray:
    """Keep the pixels of an edge map that are maxima across the edge and set the others to 0.

    A pixel is compared with the bilinearly interpolated values one pixel away on both sides.

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
    """Return the direction across the edge at each pixel of (H, W) float32: unit vectors x, y, (2, H, W) float32.

    It is the axis along which the blurred map curves most, an eigenvector of its second derivatives.
    """
    slopes, across = np.empty((2, 2, *edges.shape), np.float32)
    _fill_slopes(blur(edges[None], smoothing)[0], slopes)
    _fill_normals(slopes, across)
    return across


@inlined
def _slope(values: np.ndarray, y: int, x: int, axis: int) -> float:
    """Return the central difference along y or x: one-sided at the border, 0 along an axis of one pixel."""
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
            # Twice the angle of the axis of the larger eigenvalue has this cosine and sine, up to their length.
            cosine, sine = dxx - dyy, dyx + dyx
            length = np.sqrt(cosine * cosine + sine * sine)
            length, cosine = (length, cosine) if length > _ZERO else (_ONE, _ONE)
            large = np.sqrt((_ONE + abs(cosine) / length) * _HALF)
            small = abs(sine) / ((length + length) * large)
            along_x, along_y = (large, small) if cosine >= _ZERO else (small, large)
            along_y = along_y if sine >= _ZERO else -along_y
            # If the map curves down, the other axis has the larger magnitude.
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
                # Clamped to the map, whose border values continue outside.
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


def _removable() -> np.ndarray:
    """Return whether the first and the second half of a pass remove a pixel, (2, 256) bool, by its neighbourhood.

    Bit k of a neighbourhood is neighbour k + 1, counted counterclockwise from the east. Guo & Hall, "Parallel thinning
    with two-subiteration algorithms", CACM 1989, algorithm A1, in the form of Lam, Lee & Suen (PAMI 1992).
    """
    table = np.zeros((2, 256), dtype=np.bool_)
    for code in range(256):
        # x[1] is the east, x[9] the east again.
        x = [False, *(bool(code >> bit & 1) for bit in range(8)), bool(code & 1)]
        crossings = sum(not x[2 * i - 1] and (x[2 * i] or x[2 * i + 1]) for i in range(1, 5))
        first = sum(x[2 * i - 1] or x[2 * i] for i in range(1, 5))
        second = sum(x[2 * i] or x[2 * i + 1] for i in range(1, 5))
        if crossings == 1 and 2 <= min(first, second) <= 3:
            table[0, code] = not ((x[2] or x[3] or not x[8]) and x[1])
            table[1, code] = not ((x[6] or x[7] or not x[4]) and x[5])
    return table


_REMOVABLE = _removable()


@compiled
def thin_listed(mask: np.ndarray, width: int, pixels: np.ndarray, count: int) -> int:
    """Thin ``mask`` in place until nothing changes, and return the number of remaining pixels.

    ``mask`` is a flat bool map of lines of ``width`` pixels, whose outermost pixels are False. The first ``count`` of
    ``pixels`` are the numbers of its True pixels; the remaining ones replace them in the same order.
    """
    around = np.array([1, 1 - width, -width, -width - 1, -1, width - 1, width, width + 1])
    removed = np.empty(count, np.bool_)
    changed = True
    while changed:
        changed = False
        for half in range(2):
            for n in range(count):
                code = 0
                for bit in range(8):
                    code |= mask[pixels[n] + around[bit]] << bit
                removed[n] = _REMOVABLE[half, code]
            kept = 0
            for n in range(count):
                if removed[n]:
                    mask[pixels[n]] = False
                    changed = True
                else:
                    pixels[kept] = pixels[n]
                    kept += 1
            count = kept
    return count


def thin(mask: np.ndarray) -> np.ndarray:
    """Thin a binary map, (H, W) bool, until nothing changes; the outside of the map counts as empty."""
    padded = np.ascontiguousarray(np.pad(np.asarray(mask, dtype=np.bool_), 1))  # so that ravel is no copy
    pixels = np.flatnonzero(padded)
    thin_listed(padded.ravel(), padded.shape[1], pixels, len(pixels))
    return padded[1:-1, 1:-1].copy()


def widen(mask: np.ndarray, reach: float) -> np.ndarray:
    """Return the pixels at most ``reach`` pixels from a True pixel of a binary map, (H, W) bool."""
    away = int(reach)
    y, x = np.mgrid[-away : away + 1, -away : away + 1]
    disc = (y * y + x * x <= reach**2).astype(np.uint8)
    return cv2.dilate(np.asarray(mask, dtype=np.uint8), disc).astype(np.bool_)
