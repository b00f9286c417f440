"""The edges that the segmentations of leaves vote for, after their boundaries have moved to where the colours change."""

from __future__ import annotations

import numpy as np

from ldl.edges.structured.channels import LABEL, PATCH, SHRINK
from ldl.edges.structured.outlines import Corners, Rings, beside
from ldl.methods.forest.compiled import compiled_as_numpy, inlined

PIXELS = LABEL * LABEL
_HAS_RIGHT = (np.arange(PIXELS) % LABEL < LABEL - 1).astype(np.uint8)


@compiled_as_numpy
def vote(
    voters: np.ndarray,
    weights: np.ndarray,
    segments: np.ndarray,
    rings: Rings,
    corners: Corners,
    colour: np.ndarray,
    sums: np.ndarray,
    sharpen: int,
    votes: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Add the edges of all segmentations to some rows of a map.

    With ``sharpen`` a vote's boundaries first follow the image. Ring by ring, a pixel near a boundary goes to that
    segment, of its own and its 4-neighbours', whose mean colour in the patch is nearest to the pixel's.

    Args:
        voters: (rows, columns, m) int32, the segmentations that vote at each cell.
        weights: (rows, columns, m) float32, what each vote adds; what has 0 has no vote.
        segments: (L, 256) uint8.
        rings: Their pixels; ``sharpen`` rings, one at least.
        corners: Of their segments.
        colour: (3, H, W) float32.
        sums: (H + 1, W + 1, 3) float64, those of the colour: :func:`.colour.sum_up`.
        sharpen: How many rings may change segment.
        votes: (H, W) float32, is added to in rows ``low`` to ``high``, without the last.
    """
    window, share = np.empty((3, PIXELS), np.float32), np.empty(PIXELS, np.float32)
    means, least, nearest = np.empty((PIXELS, 3), np.float32), np.empty(PIXELS, np.float32), np.empty(PIXELS, np.int32)
    # Beyond the last pixel and around the square lies nothing that differs.
    label, across, down = np.zeros(PIXELS + 1, np.uint8), np.zeros(PIXELS + 1, np.uint8), np.zeros(17 * LABEL, np.uint8)
    for row in range(voters.shape[0]):
        top = SHRINK * row + (PATCH - LABEL) // 2
        if top >= high or top + LABEL <= low:
            continue
        for column in range(voters.shape[1]):
            left = SHRINK * column + (PATCH - LABEL) // 2
            any_edge = False
            for v in range(voters.shape[2]):
                leaf, weight = voters[row, column, v], weights[row, column, v]
                first, last = rings.start[leaf, 0], rings.start[leaf, sharpen]
                if rings.start[leaf, 1] == first or weight == 0:
                    continue
                if not any_edge:
                    any_edge = True
                    share[:] = 0
                    for y in range(LABEL if sharpen else 0):
                        for c in range(3):
                            for x in range(LABEL):
                                window[c, y * LABEL + x] = colour[c, top + y, left + x]
                for p in range(PIXELS):
                    label[p] = segments[leaf, p]
                if sharpen:
                    _fill_means(corners, leaf, sums[top:, left:], means)
                    _fill_nearest(window, means, corners.segment[leaf + 1] - corners.segment[leaf], least, nearest)
                    for k in range(first, last):
                        p = np.int64(rings.pixels[k])
                        # Others have the nearest mean of all already.
                        if nearest[p] != label[p]:
                            _move(label, p, window, means)
                _add_edges(label, weight, across, down, share)
            if any_edge:
                for y in range(max(low - top, 0), min(high - top, LABEL)):
                    line = votes[top + y, left : left + LABEL]
                    for x in range(LABEL):
                        line[x] += share[y * LABEL + x]


@inlined
def _fill_means(corners: Corners, leaf: int, sums: np.ndarray, means: np.ndarray) -> None:
    """Fill in the mean colour of each segment of a leaf; ``sums`` begin at the square's first pixel."""
    for s in range(corners.segment[leaf], corners.segment[leaf + 1]):
        red, green, blue = 0.0, 0.0, 0.0
        for k in range(corners.start[s], corners.start[s + 1]):
            corner, times = sums[corners.places[k, 0], corners.places[k, 1]], corners.places[k, 2]
            red, green, blue = red + times * corner[0], green + times * corner[1], blue + times * corner[2]
        mean = means[s - corners.segment[leaf]]
        mean[0], mean[1], mean[2] = red / corners.size[s], green / corners.size[s], blue / corners.size[s]


@inlined
def _fill_nearest(window: np.ndarray, means: np.ndarray, count: int, least: np.ndarray, nearest: np.ndarray) -> None:
    """Fill in, for each pixel, the segment out of ``count`` whose mean is nearest."""
    least[:] = np.inf
    for s in range(count):
        light, u, v = means[s, 0], means[s, 1], means[s, 2]
        for p in range(PIXELS):
            a, b, c = window[0, p] - light, window[1, p] - u, window[2, p] - v
            away = a * a + b * b + c * c
            nearest[p] = s if away < least[p] else nearest[p]
            least[p] = away if away < least[p] else least[p]


@inlined
def _move(label: np.ndarray, p: int, window: np.ndarray, means: np.ndarray) -> None:
    """Give a pixel to the segment around it that has its colour; in doubt it stays."""
    best = label[p]
    least = _distance(means[best], window, p)
    for side in range(4):
        other = label[beside(p, side)]
        if other != best:
            away = _distance(means[other], window, p)
            if away < least:
                best, least = other, away
    label[p] = best


@inlined
def _distance(mean: np.ndarray, window: np.ndarray, p: int) -> float:
    a, b, c = window[0, p] - mean[0], window[1, p] - mean[1], window[2, p] - mean[2]
    return a * a + b * b + c * c


@inlined
def _add_edges(label: np.ndarray, weight: float, across: np.ndarray, down: np.ndarray, share: np.ndarray) -> None:
    """Add ``weight`` to the pixels that have a 4-neighbour in another segment."""
    for p in range(PIXELS):
        across[p + 1] = np.uint8(label[p] != label[p + 1]) & _HAS_RIGHT[p]
    for p in range(PIXELS - LABEL):
        down[p + LABEL] = label[p] != label[p + LABEL]
    for p in range(PIXELS):
        share[p] += weight * np.float32(across[p] | across[p + 1] | down[p] | down[p + LABEL])
