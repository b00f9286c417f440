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


def rings_of(segments: np.ndarray, rings: int) -> Rings:
    """The first rings of segmentations (L, 256) uint8."""
    start = np.empty((len(segments), rings + 1), np.int32)
    pixels = np.empty(segments.size, np.uint8)
    used = _fill_rings(segments, start, pixels)
    return Rings(start, pixels[:used].copy())


@compiled
def _fill_rings(segments: np.ndarray, start: np.ndarray, pixels: np.ndarray) -> int:
    used = 0
    ring = np.empty(LABEL * LABEL, np.int64)
    for leaf in range(len(segments)):
        ring[:] = -1
        for r in range(start.shape[1] - 1):
            start[leaf, r] = used
            for p in range(LABEL * LABEL):
                if ring[p] >= 0:
                    continue
                if (r == 0 and _is_edge(segments[leaf], p)) or (r > 0 and _touches(ring, p, r - 1)):
                    ring[p] = r
                    pixels[used] = p
                    used += 1
        start[leaf, start.shape[1] - 1] = used
    return used


@inlined
def _is_edge(segments: np.ndarray, p: int) -> bool:
    y, x, own = p // LABEL, p % LABEL, segments[p]
    return (
        (y > 0 and segments[p - LABEL] != own)
        or (y < LABEL - 1 and segments[p + LABEL] != own)
        or (x > 0 and segments[p - 1] != own)
        or (x < LABEL - 1 and segments[p + 1] != own)
    )


@inlined
def _touches(ring: np.ndarray, p: int, r: int) -> bool:
    y, x = p // LABEL, p % LABEL
    return (
        (y > 0 and ring[p - LABEL] == r)
        or (y < LABEL - 1 and ring[p + LABEL] == r)
        or (x > 0 and ring[p - 1] == r)
        or (x < LABEL - 1 and ring[p + 1] == r)
    )


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
    """Fill in the leaves that patches reach.

    Args:
        maps: All maps, flat float32.
        width: Cells in a line.
        roots: (T,) first node of each tree.
        first: (M, D) where in ``maps`` the patch at cell 0 finds the node's values; -1 in a leaf.
        second: (M, D) where it finds what is subtracted, -1 for nothing.
        weight: (M, D) what the differences are multiplied by.
        threshold: (M,) sums up to this go left.
        child: (M,) the left child, or the leaf's number.
        leaves: (rows, columns, votes) int32, filled in. Each place asks the trees that follow those of its left and
            upper neighbours, in a circle: a checkerboard where the votes are half of the trees.
        low: First row that is filled in.
        high: One past the last.
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
        votes: (H, W) float32, is added to.
        low: First of its rows that is added to.
        high: One past the last.
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
                        p = np.int64(rings.pixels[k])
                        _add(votes, top + p // LABEL, left + p % LABEL, weight, low, high)
                    continue
                local[:] = segments[leaf]
                _mean_colours(local, colour, top, left, sums)
                for k in range(first, rings.start[leaf, sharpen]):
                    _move(local, np.int64(rings.pixels[k]), colour, top, left, sums)
                for k in range(first, last):
                    p = np.int64(rings.pixels[k])
                    if _is_edge(local, p):
                        _add(votes, top + p // LABEL, left + p % LABEL, weight, low, high)


@inlined
def _add(votes: np.ndarray, y: int, x: int, weight: float, low: int, high: int) -> None:
    if low <= y < high:
        votes[y, x] += weight


@inlined
def _mean_colours(local: np.ndarray, colour: np.ndarray, top: int, left: int, sums: np.ndarray) -> None:
    """Fill in the mean colour of each segment, and its size."""
    sums[: local.max() + 1] = 0
    for y in range(LABEL):
        for x in range(LABEL):
            own = sums[local[y * LABEL + x]]
            pixel = colour[top + y, left + x]
            own[0] += pixel[0]
            own[1] += pixel[1]
            own[2] += pixel[2]
            own[3] += 1
    for s in range(local.max() + 1):
        for c in range(3):
            sums[s, c] /= sums[s, 3]


@inlined
def _move(local: np.ndarray, p: int, colour: np.ndarray, top: int, left: int, means: np.ndarray) -> None:
    """Give a pixel to the segment around it that has its colour; in doubt it stays."""
    y, x = p // LABEL, p % LABEL
    pixel = colour[top + y, left + x]
    best = local[p]
    least = _distance(means[best], pixel)
    for step in range(4):
        dy, dx = (step == 1) - (step == 0), (step == 3) - (step == 2)
        if 0 <= y + dy < LABEL and 0 <= x + dx < LABEL:
            other = local[p + dy * LABEL + dx]
            if other != best:
                away = _distance(means[other], pixel)
                if away < least:
                    best, least = other, away
    local[p] = best


@inlined
def _distance(mean: np.ndarray, pixel: np.ndarray) -> float:
    return (mean[0] - pixel[0]) ** 2 + (mean[1] - pixel[1]) ** 2 + (mean[2] - pixel[2]) ** 2
