"""The loops of detection: which leaves a patch reaches, and the edges that their segmentations vote for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.channels import LABEL, PATCH, SHRINK
from ldl.methods.forest.compiled import compiled, inlined


class Rings(NamedTuple):
    """The pixels of each leaf by their distance from the edges of its segmentation.

    Attributes:
        start: (L, R + 1) int32; ring r of leaf l is ``pixels[start[l, r]:start[l, r + 1]]``. Ring 0 are the edge
            pixels, those with a 4-neighbour in another segment; each next ring touches the one before.
        pixels: Numbers 0..255 of the pixels, uint8.
    """

    start: np.ndarray
    pixels: np.ndarray


@compiled
def rings_of(segments: np.ndarray, rings: int) -> Rings:
    """The first rings of segmentations (L, 256) uint8."""
    start = np.empty((len(segments), rings + 1), np.int32)
    pixels = np.empty(segments.size, np.uint8)
    used = 0
    ring = np.empty(LABEL * LABEL, np.int64)
    for leaf in range(len(segments)):
        ring[:] = -1
        for r in range(rings):
            start[leaf, r] = used
            for p in range(LABEL * LABEL):
                if ring[p] < 0 and (_is_edge(segments[leaf], p) if r == 0 else _touches(ring, p, r - 1)):
                    ring[p] = r
                    pixels[used] = p
                    used += 1
        start[leaf, rings] = used
    return Rings(start, pixels[:used].copy())


@inlined
def _beside(p: int, side: int) -> int:
    """The pixel above, below, left or right (0..3) of pixel ``p``; that pixel itself where there is none."""
    y, x = p // LABEL + (side == 1) - (side == 0), p % LABEL + (side == 3) - (side == 2)
    return min(max(y, 0), LABEL - 1) * LABEL + min(max(x, 0), LABEL - 1)


@inlined
def _is_edge(segments: np.ndarray, p: int) -> bool:
    edge = False
    for side in range(4):
        edge |= segments[_beside(p, side)] != segments[p]
    return edge


@inlined
def _touches(ring: np.ndarray, p: int, r: int) -> bool:
    touches = False
    for side in range(4):
        touches |= ring[_beside(p, side)] == r
    return touches


@compiled
def find_leaves(
    maps: np.ndarray,
    width: int,
    roots: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    weight: np.ndarray,
    threshold: np.ndarray,
    child: np.ndarray,
    leaves: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Fill in the ``leaves`` (rows, columns, votes) int32 that patches reach, from row ``low`` up to ``high``.

    Each place asks the trees that follow those of its left and upper neighbours, in a circle: a checkerboard where the
    votes are half of the trees. ``maps`` are flat, with ``width`` cells in a line. There the patch at cell 0 finds a
    node's values at ``first`` (M, D), which is -1 in a leaf, and at ``second`` (M, D) what is subtracted, -1 for
    nothing. The others are those of :class:`.forest.EdgeForest`.
    """
    _, columns, votes = leaves.shape
    for row in range(low, high):
        for column in range(columns):
            at = row * width + column
            for v in range(votes):
                node = roots[(votes * (row + column) + v) % len(roots)]
                while first[node, 0] >= 0:
                    total = np.float32(0)
                    for d in range(first.shape[1]):
                        value = maps[first[node, d] + at]
                        if second[node, d] >= 0:
                            value -= maps[second[node, d] + at]
                        total += weight[node, d] * value
                    node = child[node] + (total > threshold[node])
                leaves[row, column, v] = child[node]


@compiled
def vote(
    voters: np.ndarray,
    weights: np.ndarray,
    segments: np.ndarray,
    rings: Rings,
    colour: np.ndarray,
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
        rings: Their pixels; ``sharpen + 1`` rings.
        colour: (H, W, 3) float32.
        sharpen: How many rings may change segment.
        votes: (H, W) float32, is added to in rows ``low`` to ``high``, without the last.
    """
    local = np.empty(LABEL * LABEL, np.uint8)
    sums = np.empty((LABEL * LABEL, 4), np.float32)
    for row in range(voters.shape[0]):
        top = SHRINK * row + (PATCH - LABEL) // 2
        if top >= high or top + LABEL <= low:
            continue
        for column in range(voters.shape[1]):
            left = SHRINK * column + (PATCH - LABEL) // 2
            for v in range(voters.shape[2]):
                leaf, weight = voters[row, column, v], weights[row, column, v]
                first, last = rings.start[leaf, 0], rings.start[leaf, sharpen + 1]
                if first == last or weight == 0:
                    continue
                if sharpen == 0:
                    for k in range(first, last):
                        _add(votes, top, left, np.int64(rings.pixels[k]), weight, low, high)
                    continue
                local[:] = segments[leaf]
                _mean_colours(local, colour, top, left, sums)
                for k in range(first, rings.start[leaf, sharpen]):
                    _move(local, np.int64(rings.pixels[k]), colour, top, left, sums)
                for k in range(first, last):
                    if _is_edge(local, np.int64(rings.pixels[k])):
                        _add(votes, top, left, np.int64(rings.pixels[k]), weight, low, high)


@inlined
def _add(votes: np.ndarray, top: int, left: int, p: int, weight: float, low: int, high: int) -> None:
    y = top + p // LABEL
    if low <= y < high:
        votes[y, left + p % LABEL] += weight


@inlined
def _mean_colours(local: np.ndarray, colour: np.ndarray, top: int, left: int, sums: np.ndarray) -> None:
    """Fill in the mean colour of each segment, and its size."""
    sums[: local.max() + 1] = 0
    for p in range(LABEL * LABEL):
        own, pixel = sums[local[p]], colour[top + p // LABEL, left + p % LABEL]
        for c in range(3):
            own[c] += pixel[c]
        own[3] += 1
    for s in range(local.max() + 1):
        for c in range(3):
            sums[s, c] /= sums[s, 3]


@inlined
def _move(local: np.ndarray, p: int, colour: np.ndarray, top: int, left: int, means: np.ndarray) -> None:
    """Give a pixel to the segment around it that has its colour; in doubt it stays."""
    pixel = colour[top + p // LABEL, left + p % LABEL]
    best = local[p]
    least = _distance(means[best], pixel)
    for side in range(4):
        other = local[_beside(p, side)]
        if other != best:
            away = _distance(means[other], pixel)
            if away < least:
                best, least = other, away
    local[p] = best


@inlined
def _distance(mean: np.ndarray, pixel: np.ndarray) -> float:
    return (mean[0] - pixel[0]) ** 2 + (mean[1] - pixel[1]) ** 2 + (mean[2] - pixel[2]) ** 2
