"""Image channels from which structured edges compute features: colour, gradient magnitude and orientation.

Dollar & Zitnick 2015, Sec. 4. Channels have the scale of *cells*, squares of 2 x 2 pixels. A patch of 32 x 32 pixels is
16 x 16 cells. Its 7228 features are 16 x 16 x 13 lightly blurred channel values and 13 x 300 differences between any
two of 5 x 5 points of the strongly blurred patch (self-similarity).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ldl.methods.numba_kernels import compiled, compiled_as_numpy, inlined

SHRINK = 2
"""Side of a cell, in pixels."""
PATCH = 32
LABEL = 16
"""Side of the square in the middle of a patch whose segmentation is predicted, in pixels."""
ORIENTATIONS = 4
CHANNELS = 3 + 2 * (1 + ORIENTATIONS)
SIDE = PATCH // SHRINK
"""Side of a patch, in cells."""
POINTS = [(2 * i + 1) * SIDE // 10 for i in range(5)]
"""Cells along one axis of a patch that self-similarity compares: the middles of its fifths."""
VALUES = SIDE * SIDE * CHANNELS
PATCH_FEATURES = VALUES + CHANNELS * 300
VALUE_BLUR, SIMILARITY_BLUR = 1, 4
"""Radii of the blur of channel values and of self-similarity, in cells."""
CONTRAST_BLUR = 4
"""Radius of the neighbourhood whose mean magnitude normalises a pixel's magnitude, in pixels."""
CONTRAST_FLOOR = 0.01

_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_WHITE = _XYZ.sum(1)
_TOTAL = np.array([1, 15, 3]) @ _WHITE
_FROM_BYTES = (_XYZ / 255).astype(np.float32)
_WHITE_U, _WHITE_V = np.float32(4 * _WHITE[0] / _TOTAL), np.float32(9 * _WHITE[1] / _TOTAL)
_DARK, _DARK_SLOPE = np.float32(216 / 24389), np.float32(243.89 / 27)
_BRIGHT, _OFFSET = np.float32(1.16), np.float32(0.16)
_LEAST = np.float32(1e-12)
_HALF, _QUARTER = np.float32(0.5), np.float32(0.25)
_ZERO, _ONE, _TWO, _FOUR = np.float32(0), np.float32(1), np.float32(2), np.float32(4)

# atan(r) / r in units of 45 degrees, as a polynomial of r squared in 0..1, with an error below 3e-8.
_ARCTAN = (
    np.polynomial.Chebyshev.interpolate(
        lambda squared: np.arctan(np.sqrt(squared)) / np.sqrt(squared) * ORIENTATIONS / np.pi, 10, [0, 1]
    )
    .convert(kind=np.polynomial.Polynomial)
    .coef[::-1]
    .astype(np.float32)
)

Bands = Callable[..., None]
"""``bands(work, rows, *arguments)`` calls ``work(*arguments, low, high)`` for bands that cover all rows."""


def one_band(work: Callable[..., None], rows: int, *arguments: Any) -> None:
    """Process all rows in this thread."""
    work(*arguments, 0, rows)


@contextmanager
def in_bands(threads: int) -> Iterator[Bands]:
    """Split rows into as many bands as ``threads``, which are processed at the same time."""
    if threads == 1:
        yield one_band
        return
    with ThreadPoolExecutor(threads) as pool:

        def share(work: Callable[..., None], rows: int, *arguments: Any) -> None:
            cuts = np.linspace(0, rows, threads + 1).astype(int).tolist()
            list(pool.map(partial(work, *arguments), cuts[:-1], cuts[1:]))

        yield share


def blur(maps: np.ndarray, radius: int) -> np.ndarray:
    """Return maps (C, H, W) after a triangle blur, float32: kernel 1, 2, .., radius + 1, .., 2, 1, borders repeated."""
    blurred = np.empty(maps.shape, np.float32)
    blur_rows(np.ascontiguousarray(maps, np.float32), radius, blurred, 0, maps.shape[1])
    return blurred


@compiled
def blur_rows(maps: np.ndarray, radius: int, blurred: np.ndarray, low: int, high: int) -> None:
    """Fill rows ``low`` to ``high - 1`` of ``blurred`` (C, H, W) float32 with the blurred maps."""
    scratch = np.empty(maps.shape[2] + 2 * radius, np.float32)
    for c in range(len(maps)):
        for y in range(low, high):
            blur_row(maps[c], y, radius, scratch, blurred[c, y])


@inlined
def blur_row(values: np.ndarray, y: int, radius: int, scratch: np.ndarray, row: np.ndarray) -> None:
    """Fill ``row`` (W,) with row ``y`` of the blurred (H, W) float32; ``scratch`` is (W + 2 radius,) float32."""
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


def luv(image: np.ndarray, bands: Bands = one_band) -> np.ndarray:
    """Convert (H, W, 3) uint8 RGB with linear primaries to CIE-LUV / 100: (3, H, W) float32, L in [0, 1]."""
    colour = np.empty((3, *image.shape[:2]), np.float32)
    bands(fill_luv, len(image), image, colour)
    return colour


@compiled_as_numpy
def fill_luv(image: np.ndarray, colour: np.ndarray, low: int, high: int) -> None:
    """Fill rows ``low`` to ``high - 1`` of ``colour`` (3, H, W) float32 as :func:`luv` does."""
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
    """Return the integral image of (3, H, W) float32, (H + 1, W + 1, 3) float64."""
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


@compiled_as_numpy
def fill_gradients(colour: np.ndarray, magnitude: np.ndarray, orientation: np.ndarray, low: int, high: int) -> None:
    """Fill rows of magnitude and orientation (H, W) of the gradient of (3, H, W) in its strongest channel, all float32.

    ``orientation`` is modulo 180 degrees, in units of 45 degrees: 0 to 4.
    """
    _, height, width = colour.shape
    centre = np.empty((3, width + 2), np.float32)
    for y in range(low, high):
        above, below = colour[:, max(y - 1, 0)], colour[:, min(y + 1, height - 1)]
        for c in range(3):
            for x in range(width):
                centre[c, x + 1] = colour[c, y, x]
            centre[c, 0], centre[c, width + 1] = centre[c, 1], centre[c, width]
        for x in range(width):
            dx, dy, longest = _ZERO, _ZERO, _ZERO
            for c in range(3):
                across, down = (centre[c, x + 2] - centre[c, x]) * _HALF, (below[c, x] - above[c, x]) * _HALF
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
            orientation[y, x] = _FOUR - turn if (dx < _ZERO) != (dy < _ZERO) else turn


@compiled_as_numpy
def fill_orientations(
    magnitude: np.ndarray, orientation: np.ndarray, size: int, floor: float, shares: np.ndarray, low: int, high: int
) -> None:
    """Fill rows of the gradient channels (5, h, w) float32, means over squares of ``size`` 1 or 2 pixels.

    The first channel is the magnitude divided by the mean of its neighbourhood plus ``floor``. The other channels
    share it linearly between the two nearest of the orientations 0, 45, 90 and 135 degrees.
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
                    away = abs(orientation[y, x] - np.float32(k))
                    away = away if away < _TWO else _FOUR - away
                    sums[1 + k, x] += around[x] * (_ONE - away if away < _ONE else _ZERO)
        for c in range(1 + ORIENTATIONS):
            for x in range(width // size):
                shares[c, row, x] = sums[c, x] if size == 1 else (sums[c, 2 * x] + sums[c, 2 * x + 1]) * _QUARTER


class FeaturePlaces(NamedTuple):
    """Positions of F features: a map of :func:`feature_maps` and one or two cells of the patch.

    Attributes:
        map: (F,) int32, the map.
        first: (F, 2) int32, row and column of the cell, 0..15.
        second: (F, 2) int32, the cell whose value is subtracted, or -1 for a plain value.
    """

    map: np.ndarray
    first: np.ndarray
    second: np.ndarray


def feature_places() -> FeaturePlaces:
    """Return the 7228 features: values by channel, row and column, then differences by channel and pair."""
    channel, row, column = np.indices((CHANNELS, SIDE, SIDE)).reshape(3, -1)
    points = np.array([(y, x) for y in POINTS for x in POINTS])
    one, two = np.triu_indices(len(points), 1)
    maps = np.concatenate([channel, CHANNELS + np.repeat(np.arange(CHANNELS), len(one))])
    first = np.concatenate([np.stack([row, column], 1), np.tile(points[one], (CHANNELS, 1))])
    second = np.concatenate([np.full((VALUES, 2), -1), np.tile(points[two], (CHANNELS, 1))])
    return FeaturePlaces(maps.astype(np.int32), first.astype(np.int32), second.astype(np.int32))


def feature_maps(image: np.ndarray, bands: Bands = one_band, floor: float = CONTRAST_FLOOR) -> np.ndarray:
    """Compute the maps from which the features of all patches are read.

    Args:
        image: (H, W, 3) uint8 RGB; H and W multiples of 4.
        bands: Shares the rows among threads.
        floor: Added to the mean gradient of the neighbourhood, by which gradients are divided.

    Returns:
        (26, H / 2, W / 2) float32. The 13 channels are colour, then magnitude and orientations at full scale and at
        half scale. They come blurred by 2 pixels, then again blurred by 8.
    """
    return blur_channels(make_channels(luv(image, bands), bands, floor), bands)


def make_channels(colour: np.ndarray, bands: Bands = one_band, floor: float = CONTRAST_FLOOR) -> np.ndarray:
    """Return the 13 channels (13, H / 2, W / 2) of CIE-LUV (3, H, W), before any blur."""
    height, width = colour.shape[1] // SHRINK, colour.shape[2] // SHRINK
    channels = np.empty((CHANNELS, height, width), np.float32)
    half = channels[:3]
    bands(fill_halves, height, colour, half)
    for number, (picture, size) in enumerate(((colour, SHRINK), (half, 1))):
        magnitude, orientation = np.empty((2, *picture.shape[1:]), np.float32)
        shares = channels[3 + number * (1 + ORIENTATIONS) :][: 1 + ORIENTATIONS]
        bands(fill_gradients, len(magnitude), picture, magnitude, orientation)
        bands(fill_orientations, height, magnitude, orientation, size, np.float32(floor), shares)
    return channels


def blur_channels(channels: np.ndarray, bands: Bands = one_band) -> np.ndarray:
    """Return channels (13, h, w) as maps (26, h, w), lightly blurred and strongly blurred."""
    maps = np.empty((2 * CHANNELS, *channels.shape[1:]), np.float32)
    for radius, group in ((VALUE_BLUR, maps[:CHANNELS]), (SIMILARITY_BLUR, maps[CHANNELS:])):
        bands(blur_rows, channels.shape[1], channels, radius, group)
    return maps


@compiled
def fill_halves(colour: np.ndarray, half: np.ndarray, low: int, high: int) -> None:
    """Fill rows of ``half`` (C, H / 2, W / 2), the means over squares of 2 x 2 of (C, H, W) float32."""
    for c in range(len(half)):
        for y in range(low, high):
            above, below = colour[c, 2 * y], colour[c, 2 * y + 1]
            for x in range(half.shape[2]):
                four = above[2 * x] + above[2 * x + 1] + (below[2 * x] + below[2 * x + 1])
                half[c, y, x] = four * np.float32(0.25)
