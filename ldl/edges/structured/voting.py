"""The edges that segmentations vote for, after their boundaries have moved to where the colours change."""

from __future__ import annotations

import numpy as np

from ldl.edges.structured.channels import LABEL, PATCH, SHRINK
from ldl.edges.structured.outlines import BESIDE, PIXELS, Outlines
from ldl.methods.forest.compiled import compiled_as_numpy, inlined

_ALL = np.uint64(PIXELS)
"""Unsigned numbers need no look at whether they count from the end."""
_HAS_RIGHT = (np.arange(PIXELS) % LABEL < LABEL - 1).astype(np.uint8)


@compiled_as_numpy
def vote(
    voters: np.ndarray,
    weights: np.ndarray,
    outlines: Outlines,
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
        outlines: The segmentations; ``sharpen`` rings of pixels may move, one at least.
        colour: (3, H, W) float32.
        sums: (H + 1, W + 1, 3) float64, those of the colour: :func:`.colour.sum_up`.
        sharpen: Whether they move, where it is not 0.
        votes: (H, W) float32, is added to in rows ``low`` to ``high``, without the last.
    """
    window, share = np.empty((3, PIXELS), np.float32), np.empty(PIXELS, np.float32)
    means, least, nearest = np.empty((PIXELS, 3), np.float32), np.empty(PIXELS, np.float32), np.empty(PIXELS, np.uint8)
    moving = np.empty(PIXELS + 1, np.uint8)
    table, data = outlines
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
                leaf, weight = np.uint64(voters[row, column, v]), weights[row, column, v]
                own, count, near = table[leaf, 0], table[leaf, 1], table[leaf, 2]
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
                    label[p] = data[own + p]
                if sharpen:
                    _fill_means(data, own + _ALL + near, count, sums, top, left, means)
                    _fill_nearest(window, means, count, least, nearest)
                    # Others have the nearest mean of all already.
                    drawn = 0
                    for k in range(near):
                        p = data[own + _ALL + k]
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
    """Fill in the mean colour of each of ``count`` segments of the square that begins at pixel ``top``, ``left``.

    Their corners begin at ``at`` in the data of the outlines.
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
    """Fill in, for each pixel, which of two or more segments has the nearest mean."""
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
    """Give a pixel to the segment around it that has its colour, best of all the one ``wanted``; in doubt it stays."""
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
