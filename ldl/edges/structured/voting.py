"""Votes of segmentations of 16 x 16 pixels for edges, with boundaries that may move to changes of colour."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.channels import LABEL, PATCH, SHRINK
from ldl.methods.numba_kernels import compiled, compiled_as_numpy, inlined

PIXELS = LABEL * LABEL
_Y, _X = np.divmod(np.arange(PIXELS), LABEL)
_MOVED = [(np.maximum(_Y - 1, 0), _X), (np.minimum(_Y + 1, LABEL - 1), _X)]
_MOVED += [(_Y, np.maximum(_X - 1, 0)), (_Y, np.minimum(_X + 1, LABEL - 1))]
BESIDE = np.stack([LABEL * y + x for y, x in _MOVED], axis=1).astype(np.uint8)
"""The pixels above, below, left and right of each pixel, (256, 4); at the border the pixel itself."""
_ALL = np.uint64(PIXELS)
"""Unsigned indices spare numba the check for negative ones."""
_HAS_RIGHT = (np.arange(PIXELS) % LABEL < LABEL - 1).astype(np.uint8)


class Rings(NamedTuple):
    """The pixels of each segmentation by their distance from its edges.

    Attributes:
        start: (L, R + 1) int32; ring r of segmentation l is ``pixels[start[l, r]:start[l, r + 1]]``. Ring 0
            holds the edge pixels, which have a 4-neighbour in another segment. Each further ring touches the ring
            before.
        pixels: Numbers 0..255 of the pixels, uint8.
    """

    start: np.ndarray
    pixels: np.ndarray


class Outlines(NamedTuple):
    """Segmentations in the form that votes read.

    The sum over a segment is a sum of an integral image at the corners of the segment.

    Attributes:
        table: (L, 3) uint64: the start of a segmentation in ``data``, its number of segments, and its
            number of pixels that may move. Without an edge the last is 0, and the segmentation has no ``data``.
        data: uint8. The segment of each of 256 pixels; the numbers of the pixels that may move, ring by ring. Then, for
            each segment but the last: size, number of corners (low byte, high byte), and corners. A corner is row
            0..16, column 0..16, and 2 plus the factor, -2..2, of the integral image there.
    """

    table: np.ndarray
    data: np.ndarray


def outlines_of(segments: np.ndarray, rings: int) -> Outlines:
    """Return the outlines of segmentations (L, 256) uint8, numbered without a gap, whose first ``rings`` may move."""
    near, table = rings_of(segments, rings), np.zeros((len(segments), 3), np.uint64)
    size = _write(segments, near, table, np.empty(0, np.uint8))
    data = np.empty(size, np.uint8)
    _write(segments, near, table, data)
    return Outlines(table, data)


@compiled
def _write(segments: np.ndarray, near: Rings, table: np.ndarray, data: np.ndarray) -> int:
    """Fill ``table`` and, unless it is empty, ``data``; return the size that ``data`` needs."""
    used, writes = 0, len(data) > 0
    for leaf in range(len(segments)):
        first, last = near.start[leaf, 0], near.start[leaf, near.start.shape[1] - 1]
        label, count = segments[leaf], 0
        for p in range(PIXELS):
            count = max(count, label[p] + 1)
        table[leaf, 0], table[leaf, 1], table[leaf, 2] = used, count, last - first
        if first == last:
            continue
        if writes:
            for p in range(PIXELS):
                data[used + p] = label[p]
            for k in range(first, last):
                data[used + PIXELS + k - first] = near.pixels[k]
        used += PIXELS + last - first
        for s in range(count - 1):
            size, head = 0, used
            used += 3
            for y in range(LABEL + 1):
                for x in range(LABEL + 1):
                    here = _within(label, y, x, s)
                    times = here + _within(label, y - 1, x - 1, s)
                    times -= _within(label, y - 1, x, s) + _within(label, y, x - 1, s)
                    size += here
                    if times != 0:
                        if writes:
                            data[used], data[used + 1], data[used + 2] = y, x, times + 2
                        used += 3
            if writes:
                corners = (used - head) // 3 - 1
                data[head], data[head + 1], data[head + 2] = size, corners & 255, corners >> 8
    return used


@compiled
def rings_of(segments: np.ndarray, rings: int) -> Rings:
    """Return the first rings of segmentations (L, 256) uint8."""
    start = np.empty((len(segments), rings + 1), np.int32)
    pixels = np.empty(segments.size, np.uint8)
    used = 0
    ring = np.empty(PIXELS, np.int64)
    for leaf in range(len(segments)):
        ring[:] = -1
        for r in range(rings):
            start[leaf, r] = used
            for p in range(PIXELS):
                if ring[p] < 0 and (_is_edge(segments[leaf], p) if r == 0 else _touches(ring, p, r - 1)):
                    ring[p] = r
                    pixels[used] = p
                    used += 1
        start[leaf, rings] = used
    return Rings(start, pixels[:used].copy())


@inlined
def _within(label: np.ndarray, y: int, x: int, s: int) -> int:
    return int(0 <= y < LABEL and 0 <= x < LABEL and label[y * LABEL + x] == s)


@inlined
def _is_edge(segments: np.ndarray, p: int) -> bool:
    edge = False
    for side in range(4):
        edge |= segments[BESIDE[p, side]] != segments[p]
    return edge


@inlined
def _touches(ring: np.ndarray, p: int, r: int) -> bool:
    touches = False
    for side in range(4):
        touches |= ring[BESIDE[p, side]] == r
    return touches


@compiled_as_numpy
def vote(
    voters: np.ndarray, weights: np.ndarray, outlines: Outlines, colour: np.ndarray, sums: np.ndarray, sharpen: int,
    votes: np.ndarray, low: int, high: int,
) -> None:  # fmt: skip
    """Add the edges of all segmentations to some rows of a map.

    With ``sharpen``, the boundaries of a vote first follow the image. Ring by ring, a pixel near a boundary joins the
    segment, among its own and those of its 4-neighbours, whose mean colour in the patch is nearest to the pixel.

    Args:
        voters: (rows, columns, m) int32, the segmentations that vote at each cell.
        weights: (rows, columns, m) float32, the weight of each vote; 0 is no vote.
        outlines: The segmentations, of which ``sharpen`` rings of pixels may move, at least one.
        colour: (3, H, W) float32.
        sums: (H + 1, W + 1, 3) float64, the integral image of the colour.
        sharpen: Whether boundaries move, if it is not 0.
        votes: (H, W) float32, the map; rows ``low`` to ``high - 1`` are added to.
    """
    window, share = np.empty((3, PIXELS), np.float32), np.empty(PIXELS, np.float32)
    means, least, nearest = np.empty((PIXELS, 3), np.float32), np.empty(PIXELS, np.float32), np.empty(PIXELS, np.uint8)
    moving = np.empty(PIXELS + 1, np.uint8)
    table, data = outlines
    # Beyond the last pixel and around the square, no label differs.
    label, across, down = np.zeros(PIXELS + 1, np.uint8), np.zeros(PIXELS + 1, np.uint8), np.zeros(17 * LABEL, np.uint8)
    for row in range(voters.shape[0]):
        top = SHRINK * row + (PATCH - LABEL) // 2
        if top >= high or top + LABEL <= low:
            continue
        for column in range(voters.shape[1]):
            left = SHRINK * column + (PATCH - LABEL) // 2
            any_edge = False
            for v in range(voters.shape[2]):
                leaf, weight = np.uint64(voters[row, column, v]), weights[row, column, v]
                start, count, near = table[leaf, 0], table[leaf, 1], table[leaf, 2]
                if near == 0 or weight == 0:
                    continue
                if not any_edge:
                    any_edge = True
                    share[:] = 0
                    for y in range(LABEL if sharpen else 0):
                        for c in range(3):
                            for x in range(LABEL):
                                window[c, y * LABEL + x] = colour[c, top + y, left + x]
                for p in range(_ALL):
                    label[p] = data[start + p]
                if sharpen:
                    _fill_means(data, start + _ALL + near, count, sums, top, left, means)
                    _fill_nearest(window, means, count, least, nearest)
                    # The other pixels already have the nearest mean.
                    drawn = 0
                    for k in range(near):
                        p = data[start + _ALL + k]
                        moving[drawn] = p
                        drawn += nearest[p] != label[p]
                    for k in range(drawn):
                        _move(label, moving[k], nearest[moving[k]], count, window, means)
                _add_edges(label, weight, across, down, share)
            if any_edge:
                for y in range(max(low - top, 0), min(high - top, LABEL)):
                    for x in range(LABEL):
                        votes[top + y, left + x] += share[y * LABEL + x]


@inlined
def _fill_means(
    data: np.ndarray, at: int, count: int, sums: np.ndarray, top: int, left: int, means: np.ndarray
) -> None:
    """Fill the mean colour of each of ``count`` segments of the square that starts at pixel ``top``, ``left``.

    The corners of the segments start at ``at`` in the data of the outlines.
    """
    bottom, right = top + LABEL, left + LABEL
    reds = sums[bottom, right, 0] - sums[top, right, 0] - sums[bottom, left, 0] + sums[top, left, 0]
    greens = sums[bottom, right, 1] - sums[top, right, 1] - sums[bottom, left, 1] + sums[top, left, 1]
    blues = sums[bottom, right, 2] - sums[top, right, 2] - sums[bottom, left, 2] + sums[top, left, 2]
    rest = PIXELS
    for s in range(count - 1):
        size = np.int64(data[at])
        last = at + np.uint64(3 * (1 + data[at + 1] + 256 * data[at + 2]))
        red, green, blue = 0.0, 0.0, 0.0
        for corner in range(at + np.uint64(3), last, np.uint64(3)):
            y, x = np.uint64(top + data[corner]), np.uint64(left + data[corner + 1])
            times = np.float64(data[corner + 2]) - 2.0
            red += times * sums[y, x, 0]
            green += times * sums[y, x, 1]
            blue += times * sums[y, x, 2]
        means[s, 0], means[s, 1], means[s, 2] = red / size, green / size, blue / size
        rest, reds, greens, blues, at = rest - size, reds - red, greens - green, blues - blue, last
    s = count - 1
    means[s, 0], means[s, 1], means[s, 2] = reds / rest, greens / rest, blues / rest


@inlined
def _fill_nearest(window: np.ndarray, means: np.ndarray, count: int, least: np.ndarray, nearest: np.ndarray) -> None:
    """Fill the number of the segment with the nearest mean for each pixel, among two or more segments."""
    for p in range(PIXELS):
        one, two = _distance(means, 0, window, p), _distance(means, 1, window, p)
        nearest[p] = two < one
        least[p] = two if two < one else one
    for s in range(2, count):
        for p in range(PIXELS):
            away = _distance(means, s, window, p)
            nearest[p] = s if away < least[p] else nearest[p]
            least[p] = away if away < least[p] else least[p]


@inlined
def _move(label: np.ndarray, p: int, wanted: int, count: int, window: np.ndarray, means: np.ndarray) -> None:
    """Assign a pixel to the adjacent segment with the nearest colour, which ``wanted`` is if it is adjacent."""
    best, touches = label[p], False
    for side in range(4):
        touches |= label[BESIDE[p, side]] == wanted
    least = _distance(means, best, window, p)
    if touches:
        label[p] = wanted if _distance(means, wanted, window, p) < least else best
    elif count > 2:
        for side in range(4):
            other = label[BESIDE[p, side]]
            away = _distance(means, other, window, p)
            best, least = (other, away) if away < least else (best, least)
        label[p] = best


@inlined
def _distance(means: np.ndarray, s: int, window: np.ndarray, p: int) -> float:
    a, b, c = window[0, p] - means[s, 0], window[1, p] - means[s, 1], window[2, p] - means[s, 2]
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
