"""Triangle blur: the kernel 1, 2, .., radius + 1, .., 2, 1 along both axes, borders repeated."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import compiled, inlined


def blur(maps: np.ndarray, radius: int) -> np.ndarray:
    """The maps (C, H, W), blurred, float32."""
    blurred = np.empty(maps.shape, np.float32)
    blur_rows(np.ascontiguousarray(maps, np.float32), radius, blurred, 0, maps.shape[1])
    return blurred


@compiled
def blur_rows(maps: np.ndarray, radius: int, blurred: np.ndarray, low: int, high: int) -> None:
    """Fill in the rows ``low`` to ``high``, without the last, of (C, H, W) float32."""
    scratch = np.empty(maps.shape[2] + 2 * radius, np.float32)
    for c in range(len(maps)):
        for y in range(low, high):
            blur_row(maps[c], y, radius, scratch, blurred[c, y])


@inlined
def blur_row(values: np.ndarray, y: int, radius: int, scratch: np.ndarray, row: np.ndarray) -> None:
    """Fill in ``row`` (W,), row ``y`` of the blurred (H, W) float32; ``scratch`` is (W + 2 radius,) float32."""
    height, width = values.shape
    scratch[:] = 0
    down = scratch[radius : radius + width]
    for k in range(2 * radius + 1):
        weight = np.float32(min(k, 2 * radius - k) + 1)
        source = values[min(max(y + k - radius, 0), height - 1)]
        for x in range(width):
            down[x] += weight * source[x]
    scratch[:radius] = down[0]
    scratch[radius + width :] = down[width - 1]
    row[:] = 0
    for k in range(2 * radius + 1):
        weight = np.float32((min(k, 2 * radius - k) + 1) / (radius + 1) ** 4)
        source = scratch[k : k + width]
        for x in range(width):
            row[x] += weight * source[x]
