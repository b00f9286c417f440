"""CIE-LUV of images, and its sums over any set of pixels."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import compiled, compiled_as_numpy

_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_WHITE = _XYZ.sum(1)
_TOTAL = np.array([1, 15, 3]) @ _WHITE
_FROM_BYTES = (_XYZ / 255).astype(np.float32)
_WHITE_U, _WHITE_V = np.float32(4 * _WHITE[0] / _TOTAL), np.float32(9 * _WHITE[1] / _TOTAL)
_DARK, _DARK_SLOPE = np.float32(216 / 24389), np.float32(243.89 / 27)
_BRIGHT, _OFFSET = np.float32(1.16), np.float32(0.16)
_LEAST = np.float32(1e-12)


@compiled_as_numpy
def fill_luv(image: np.ndarray, colour: np.ndarray, low: int, high: int) -> None:
    """Fill in CIE-LUV, its primaries taken as linear, divided by 100, so that L is in [0, 1].

    ``image`` is (H, W, 3) uint8 RGB; of ``colour`` (3, H, W) float32 rows ``low`` to ``high``, without the last.
    """
    width = image.shape[1]
    three, four, nine, thirteen = np.float32(3), np.float32(4), np.float32(9), np.float32(13)
    fifteen = np.float32(15)
    for row in range(low, high):
        light, u, v = colour[0, row], colour[1, row], colour[2, row]
        for column in range(width):
            red, green = np.float32(image[row, column, 0]), np.float32(image[row, column, 1])
            blue = np.float32(image[row, column, 2])
            x = _FROM_BYTES[0, 0] * red + _FROM_BYTES[0, 1] * green + _FROM_BYTES[0, 2] * blue
            y = _FROM_BYTES[1, 0] * red + _FROM_BYTES[1, 1] * green + _FROM_BYTES[1, 2] * blue
            z = _FROM_BYTES[2, 0] * red + _FROM_BYTES[2, 1] * green + _FROM_BYTES[2, 2] * blue
            # The cube root: y ** (1/4 + 1/16) is off by a tenth at most; each of Halley's steps cubes the error.
            quarter = np.sqrt(np.sqrt(y))
            root = quarter * np.sqrt(np.sqrt(quarter))
            for _ in range(2):
                cube = root * root * root
                root *= (cube + y + y) / (cube + cube + y)
            light[column] = _BRIGHT * root - _OFFSET if y > _DARK else _DARK_SLOPE * y
            total = x + fifteen * y + three * z
            total = total if total > _LEAST else _LEAST
            u[column] = thirteen * light[column] * (four * x / total - _WHITE_U)
            v[column] = thirteen * light[column] * (nine * y / total - _WHITE_V)


@compiled
def sum_up(colour: np.ndarray) -> np.ndarray:
    """Sums of (3, H, W) float32 over all pixels above and left of each corner, (H + 1, W + 1, 3) float64."""
    _, height, width = colour.shape
    sums = np.zeros((height + 1, width + 1, 3))
    for y in range(height):
        red, green, blue = 0.0, 0.0, 0.0
        for x in range(width):
            red, green, blue = red + colour[0, y, x], green + colour[1, y, x], blue + colour[2, y, x]
            sums[y + 1, x + 1, 0] = sums[y, x + 1, 0] + red
            sums[y + 1, x + 1, 1] = sums[y, x + 1, 1] + green
            sums[y + 1, x + 1, 2] = sums[y, x + 1, 2] + blue
    return sums
