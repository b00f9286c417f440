"""Channels of an image that structured edges look at (Dollar & Zitnick 2015, Sec. 4): colour, gradient, orientation.

Everything here works at the scale of *cells*, squares of 2 x 2 pixels. A patch of 32 x 32 pixels is 16 x 16 cells, and
its 7228 features are 16 x 16 x 13 channel values, lightly blurred, and 13 x 300 differences: of each two of 5 x 5
points of the patch, strongly blurred (self-similarity).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

SHRINK = 2
PATCH = 32
LABEL = 16
"""Side of the square in the middle of a patch whose segmentation is predicted, in pixels."""
ORIENTATIONS = 4
CHANNELS = 3 + 2 * (1 + ORIENTATIONS)
SIDE = PATCH // SHRINK
POINTS = [(2 * i + 1) * SIDE // 10 for i in range(5)]
"""Cells along one axis of a patch that self-similarity compares: the middles of its fifths."""
VALUES = SIDE * SIDE * CHANNELS
FEATURES = VALUES + CHANNELS * 300

VALUE_BLUR, SIMILARITY_BLUR, CONTRAST_BLUR = 1, 4, 4
CONTRAST_FLOOR = 0.01


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


def feature_maps(image: Tensor, floor: float = CONTRAST_FLOOR) -> Tensor:
    """The maps that the features of all patches are read from.

    Args:
        image: (3, H, W) RGB in [0, 1]; H and W multiples of 4.
        floor: See :func:`oriented_gradients`.

    Returns:
        (26, H / 2, W / 2) float32: the 13 channels (colour; then magnitude and orientations at full scale, at half
        scale) blurred by 2 pixels, and again blurred by 8.
    """
    channels = make_channels(image, floor)
    return torch.cat([blur(channels, VALUE_BLUR), blur(channels, SIMILARITY_BLUR)])


def make_channels(image: Tensor, floor: float = CONTRAST_FLOOR) -> Tensor:
    """The 13 channels of (3, H, W) RGB in [0, 1], (13, H / 2, W / 2): before any blur."""
    colour = luv(image)
    half = F.avg_pool2d(colour, 2)
    fine, coarse = oriented_gradients(colour, floor), oriented_gradients(half, floor)
    return torch.cat([half, F.avg_pool2d(fine, 2), coarse])


def luv(image: Tensor) -> Tensor:
    """CIE-LUV of (3, H, W) RGB, its primaries taken as linear; divided by 100, so that L is in [0, 1]."""
    matrix = torch.tensor(
        [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]],
        dtype=image.dtype,
    )
    x, y, z = torch.einsum("ij,jhw->ihw", matrix, image)
    light = torch.where(y > 216 / 24389, 1.16 * y.clamp_min(1e-12) ** (1 / 3) - 0.16, 243.89 / 27 * y)
    total = (x + 15 * y + 3 * z).clamp_min(1e-12)
    white = matrix.sum(1)
    white_total = white[0] + 15 * white[1] + 3 * white[2]
    u = 13 * light * (4 * x / total - 4 * white[0] / white_total)
    v = 13 * light * (9 * y / total - 9 * white[1] / white_total)
    return torch.stack([light, u, v])


def oriented_gradients(colour: Tensor, floor: float = CONTRAST_FLOOR) -> Tensor:
    """Gradient magnitude of (3, H, W), relative to its surroundings, and its share in 4 orientations: (5, H, W).

    Each pixel has the gradient of the colour channel where it is largest. The orientation counts modulo 180 degrees and
    is shared linearly between the two nearest of 0, 45, 90 and 135 degrees. A magnitude is divided by its surroundings'
    mean plus ``floor``, so that weak texture stays weak.
    """
    padded = F.pad(colour[None], (1, 1, 1, 1), mode="replicate")[0]
    dx = (padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]) / 2
    dy = (padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]) / 2
    squared, strongest = (dx * dx + dy * dy).max(0, keepdim=True)
    magnitude = squared.sqrt()
    dx, dy = dx.gather(0, strongest), dy.gather(0, strongest)
    magnitude = magnitude / (blur(magnitude, CONTRAST_BLUR) + floor)
    angle = torch.atan2(dy, dx) * (ORIENTATIONS / torch.pi)
    bins = torch.arange(ORIENTATIONS, dtype=colour.dtype)[:, None, None]
    away = (angle - bins).remainder(ORIENTATIONS)
    share = (1 - torch.minimum(away, ORIENTATIONS - away)).clamp_min(0)
    return torch.cat([magnitude, magnitude * share])


def blur(maps: Tensor, radius: int) -> Tensor:
    """Triangle blur of (C, H, W): the kernel 1, 2, .., radius + 1, .., 2, 1 along both axes, borders repeated."""
    if radius == 0:
        return maps
    padded = F.pad(maps[None], (radius,) * 4, mode="replicate")[0]
    for axis in (1, 2):
        # Two boxes are a triangle.
        padded = _box_sum(_box_sum(padded, radius + 1, axis), radius + 1, axis)
    return padded / (radius + 1) ** 4


def _box_sum(values: Tensor, width: int, axis: int) -> Tensor:
    """Sums of ``width`` neighbours along an axis, from sums of 1, 2, 4, ... (pooling takes several times as long)."""
    count = values.shape[axis] - width + 1
    total, start, size = torch.zeros(()), 0, 1
    while True:
        if width & size:
            part = values.narrow(axis, start, count)
            total = total + part if start else part
            start += size
        if 2 * size > width:
            return total
        values = values.narrow(axis, 0, values.shape[axis] - size) + values.narrow(
            axis, size, values.shape[axis] - size
        )
        size *= 2
