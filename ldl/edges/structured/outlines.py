"""Segmentations of 16 x 16 pixels made ready to vote: pixels near their edges, and corners of their segments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.channels import LABEL
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


class Corners(NamedTuple):
    """Where the segments of L leaves have corners: sums over a segment are sums of an integral image there.

    Attributes:
        segment: (L + 1,) int32; the segments of leaf l are numbers ``segment[l]`` to ``segment[l + 1]``.
        start: (S + 1,) int64; the corners of segment s are ``places[start[s]:start[s + 1]]``.
        size: (S,) int32, the pixels of each segment.
        places: (n, 3) int8: row 0..16, column 0..16, and how often what lies above and left of it is added, -2..2.
    """

    segment: np.ndarray
    start: np.ndarray
    size: np.ndarray
    places: np.ndarray


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


@compiled
def corners_of(segments: np.ndarray) -> Corners:
    """The corners of segmentations (L, 256) uint8, numbered 0, 1, ... without a gap."""
    segment = np.zeros(len(segments) + 1, np.int32)
    for leaf in range(len(segments)):
        for p in range(LABEL * LABEL):
            segment[leaf + 1] = max(segment[leaf + 1], segments[leaf, p] + 1)
        segment[leaf + 1] += segment[leaf]
    start, size = np.zeros(segment[-1] + 1, np.int64), np.zeros(segment[-1], np.int32)
    places = np.empty((0, 3), np.int8)
    # They are counted, then written.
    for writes in range(2):
        known = 0
        for leaf in range(len(segments)):
            label = segments[leaf]
            for s in range(segment[leaf + 1] - segment[leaf]):
                for y in range(LABEL + 1):
                    for x in range(LABEL + 1):
                        times = _within(label, y - 1, x - 1, s) + _within(label, y, x, s)
                        times -= _within(label, y - 1, x, s) + _within(label, y, x - 1, s)
                        if times != 0:
                            if writes:
                                places[known, 0], places[known, 1], places[known, 2] = y, x, times
                            known += 1
                        if writes:
                            size[segment[leaf] + s] += _within(label, y, x, s)
                start[segment[leaf] + s + 1] = known
        if not writes:
            places = np.empty((known, 3), np.int8)
    return Corners(segment, start, size, places)


@inlined
def _within(label: np.ndarray, y: int, x: int, s: int) -> int:
    return int(0 <= y < LABEL and 0 <= x < LABEL and label[y * LABEL + x] == s)


@inlined
def beside(p: int, side: int) -> int:
    """The pixel above, below, left or right (0..3) of pixel ``p``; that pixel itself where there is none."""
    y, x = p // LABEL + (side == 1) - (side == 0), p % LABEL + (side == 3) - (side == 2)
    return min(max(y, 0), LABEL - 1) * LABEL + min(max(x, 0), LABEL - 1)


@inlined
def _is_edge(segments: np.ndarray, p: int) -> bool:
    edge = False
    for side in range(4):
        edge |= segments[beside(p, side)] != segments[p]
    return edge


@inlined
def _touches(ring: np.ndarray, p: int, r: int) -> bool:
    touches = False
    for side in range(4):
        touches |= ring[beside(p, side)] == r
    return touches
