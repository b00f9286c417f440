"""Channels of an image that structured edges look at (Dollar & Zitnick 2015, Sec. 4): colour, gradient, orientation.

Everything here works at the scale of *cells*, squares of 2 x 2 pixels. A patch of 32 x 32 pixels is 16 x 16 cells, and
its 7228 features are 16 x 16 x 13 channel values, lightly blurred, and 13 x 300 differences: of each two of 5 x 5
points of the patch, strongly blurred (self-similarity).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.bands import Bands, whole
from ldl.edges.structured.blur import blur_rows
from ldl.edges.structured.colour import fill_luv
from ldl.edges.structured.gradients import CONTRAST_FLOOR, ORIENTATIONS, fill_gradients, fill_orientations
from ldl.methods.forest.compiled import compiled

SHRINK = 2
PATCH = 32
LABEL = 16
"""Side of the square in the middle of a patch whose segmentation is predicted, in pixels."""
CHANNELS = 3 + 2 * (1 + ORIENTATIONS)
SIDE = PATCH // SHRINK
POINTS = [(2 * i + 1) * SIDE // 10 for i in range(5)]
"""Cells along one axis of a patch that self-similarity compares: the middles of its fifths."""
VALUES = SIDE * SIDE * CHANNELS
FEATURES = VALUES + CHANNELS * 300

VALUE_BLUR, SIMILARITY_BLUR = 1, 4
"""Radii of the blurs of values and of what is compared, in cells."""


class Places(NamedTuple):
    """Where each feature looks: a map of :func:`feature_maps`, and a cell (or two) of the patch.

    Attributes:
        map: (F,) int32, the map.
        first: (F, 2) int32, row and column of the cell, 0..15.
        second: (F, 2) int32, the cell whose value is subtracted, or -1 where none is.
    """

    map: np.ndarray
    first: np.ndarray
    second: np.ndarray


def feature_places() -> Places:
    """The 7228 features in order: values by channel, row and column; then differences by channel and pair."""
    channel, row, column = np.indices((CHANNELS, SIDE, SIDE)).reshape(3, -1)
    points = np.array([(y, x) for y in POINTS for x in POINTS])
    one, two = np.triu_indices(len(points), 1)
    maps = np.concatenate([channel, CHANNELS + np.repeat(np.arange(CHANNELS), len(one))])
    first = np.concatenate([np.stack([row, column], 1), np.tile(points[one], (CHANNELS, 1))])
    second = np.concatenate([np.full((VALUES, 2), -1), np.tile(points[two], (CHANNELS, 1))])
    return Places(maps.astype(np.int32), first.astype(np.int32), second.astype(np.int32))


def feature_maps(image: np.ndarray, bands: Bands = whole, floor: float = CONTRAST_FLOOR) -> np.ndarray:
    """The maps that the features of all patches are read from.

    Args:
        image: (H, W, 3) uint8 RGB; H and W multiples of 4.
        bands: Shares the rows among threads.
        floor: What is added to the mean gradient of the surroundings, by which gradients are divided.

    Returns:
        (26, H / 2, W / 2) float32: the 13 channels (colour; then magnitude and orientations at full scale, at half
        scale) blurred by 2 pixels, and again blurred by 8.
    """
    return blur_channels(make_channels(luv(image, bands), bands, floor), bands)


def luv(image: np.ndarray, bands: Bands = whole) -> np.ndarray:
    """CIE-LUV of (H, W, 3) uint8 RGB, its primaries taken as linear: (3, H, W) float32, L in [0, 1]."""
    colour = np.empty((3, *image.shape[:2]), np.float32)
    bands(lambda low, high: fill_luv(image, colour, low, high), len(image))
    return colour


def make_channels(colour: np.ndarray, bands: Bands = whole, floor: float = CONTRAST_FLOOR) -> np.ndarray:
    """The 13 channels of CIE-LUV (3, H, W), (13, H / 2, W / 2), before any blur."""
    height, width = colour.shape[1] // SHRINK, colour.shape[2] // SHRINK
    channels = np.empty((CHANNELS, height, width), np.float32)
    half = channels[:3]
    bands(lambda low, high: fill_halves(colour, half, low, high), height)
    for number, (picture, size) in enumerate(((colour, SHRINK), (half, 1))):
        magnitude, place = np.empty((2, *picture.shape[1:]), np.float32)
        shares = channels[3 + number * (1 + ORIENTATIONS) :][: 1 + ORIENTATIONS]
        _fill_gradients(picture, magnitude, place, size, np.float32(floor), shares, bands)
    return channels


def _fill_gradients(
    picture: np.ndarray, magnitude: np.ndarray, place: np.ndarray, size: int, floor: np.float32, shares: np.ndarray,
    bands: Bands,
) -> None:  # fmt: skip
    bands(lambda low, high: fill_gradients(picture, magnitude, place, low, high), len(magnitude))
    bands(lambda low, high: fill_orientations(magnitude, place, size, floor, shares, low, high), shares.shape[1])


def blur_channels(channels: np.ndarray, bands: Bands = whole) -> np.ndarray:
    """Channels (13, h, w) as maps (26, h, w): blurred a little, and blurred much."""
    maps = np.empty((2 * CHANNELS, *channels.shape[1:]), np.float32)
    for radius, part in ((VALUE_BLUR, maps[:CHANNELS]), (SIMILARITY_BLUR, maps[CHANNELS:])):
        _blur(channels, radius, part, bands)
    return maps


def _blur(channels: np.ndarray, radius: int, part: np.ndarray, bands: Bands) -> None:
    bands(lambda low, high: blur_rows(channels, radius, part, low, high), channels.shape[1])


@compiled
def fill_halves(colour: np.ndarray, half: np.ndarray, low: int, high: int) -> None:
    """Fill in rows ``low`` to ``high`` of (C, H / 2, W / 2), means over squares of 2 x 2 of (C, H, W) float32."""
    for c in range(len(half)):
        for y in range(low, high):
            above, below = colour[c, 2 * y], colour[c, 2 * y + 1]
            for x in range(half.shape[2]):
                four = above[2 * x] + above[2 * x + 1] + (below[2 * x] + below[2 * x + 1])
                half[c, y, x] = four * np.float32(0.25)
