"""Gradient magnitude of an image, and how it is shared among four orientations."""

from __future__ import annotations

import numpy as np

from ldl.edges.structured.blur import blur_row
from ldl.methods.forest.compiled import compiled_as_numpy

ORIENTATIONS = 4
CONTRAST_BLUR = 4
"""Radius of the surroundings whose magnitude a pixel's is divided by, in pixels."""
CONTRAST_FLOOR = 0.01

# atan(r) / r in units of 45 degrees, as a polynomial of r squared in 0..1; it is off by 3e-8.
_ARCTAN = (
    np.polynomial.Chebyshev.interpolate(
        lambda squared: np.arctan(np.sqrt(squared)) / np.sqrt(squared) * ORIENTATIONS / np.pi, 10, [0, 1]
    )
    .convert(kind=np.polynomial.Polynomial)
    .coef[::-1]
    .astype(np.float32)
)
_HALF, _QUARTER = np.float32(0.5), np.float32(0.25)
_ZERO, _ONE, _TWO, _FOUR = np.float32(0), np.float32(1), np.float32(2), np.float32(4)


@compiled_as_numpy
def fill_gradients(colour: np.ndarray, magnitude: np.ndarray, place: np.ndarray, low: int, high: int) -> None:
    """Fill in length and place (H, W) of the gradient of (3, H, W) in its strongest channel, rows ``low`` to ``high``.

    The place is the orientation modulo 180 degrees, in units of 45 degrees: 0 to 4. All are float32.
    """
    _, height, width = colour.shape
    own = np.empty((3, width + 2), np.float32)
    for y in range(low, high):
        above, below = colour[:, max(y - 1, 0)], colour[:, min(y + 1, height - 1)]
        for c in range(3):
            for x in range(width):
                own[c, x + 1] = colour[c, y, x]
            own[c, 0], own[c, width + 1] = own[c, 1], own[c, width]
        for x in range(width):
            dx, dy, longest = _ZERO, _ZERO, _ZERO
            for c in range(3):
                across, down = (own[c, x + 2] - own[c, x]) * _HALF, (below[c, x] - above[c, x]) * _HALF
                length = across * across + down * down
                dx, dy = (across, down) if length > longest else (dx, dy)
                longest = length if length > longest else longest
            magnitude[y, x] = np.sqrt(longest)
            wide, tall = abs(dx), abs(dy)
            large, small = (wide, tall) if wide > tall else (tall, wide)
            ratio = small / (large if large > _ZERO else _ONE)
            squared, turn = ratio * ratio, _ZERO
            for factor in _ARCTAN:
                turn = turn * squared + factor
            turn *= ratio
            turn = _TWO - turn if tall > wide else turn
            place[y, x] = _FOUR - turn if (dx < _ZERO) != (dy < _ZERO) else turn


@compiled_as_numpy
def fill_orientations(
    magnitude: np.ndarray, place: np.ndarray, size: int, floor: float, shares: np.ndarray, low: int, high: int
) -> None:
    """Fill in gradient channels (5, h, w) in rows ``low`` to ``high``: means over squares of ``size`` 1 or 2 pixels.

    They are magnitude, divided by the mean of its surroundings plus ``floor``, and its share in 4 orientations: that of
    a pixel is shared linearly between the two nearest of 0, 45, 90 and 135 degrees. All are float32.
    """
    width = magnitude.shape[1]
    scratch, around = np.empty(width + 2 * CONTRAST_BLUR, np.float32), np.empty(width, np.float32)
    sums = np.empty((1 + ORIENTATIONS, width), np.float32)
    for row in range(low, high):
        sums[:] = 0
        for y in range(size * row, size * row + size):
            blur_row(magnitude, y, CONTRAST_BLUR, scratch, around)
            for x in range(width):
                around[x] = magnitude[y, x] / (around[x] + floor)
                sums[0, x] += around[x]
            for k in range(ORIENTATIONS):
                for x in range(width):
                    away = abs(place[y, x] - np.float32(k))
                    away = away if away < _TWO else _FOUR - away
                    sums[1 + k, x] += around[x] * (_ONE - away if away < _ONE else _ZERO)
        for c in range(1 + ORIENTATIONS):
            for x in range(width // size):
                shares[c, row, x] = sums[c, x] if size == 1 else (sums[c, 2 * x] + sums[c, 2 * x + 1]) * _QUARTER
