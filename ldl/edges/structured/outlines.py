"""Segmentations of 16 x 16 pixels made ready to vote: pixels near their edges, corners of their segments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.channels import LABEL
from ldl.methods.forest.compiled import compiled, inlined

PIXELS = LABEL * LABEL
_Y, _X = np.divmod(np.arange(PIXELS), LABEL)
_MOVED = [(np.maximum(_Y - 1, 0), _X), (np.minimum(_Y + 1, LABEL - 1), _X)]
_MOVED += [(_Y, np.maximum(_X - 1, 0)), (_Y, np.minimum(_X + 1, LABEL - 1))]
BESIDE = np.stack([LABEL * y + x for y, x in _MOVED], axis=1).astype(np.uint8)
"""The pixels above, below, left and right of each pixel, (256, 4); that pixel itself where there is none."""


class Rings(NamedTuple):
    """The pixels of each leaf by their distance from the edges of its segmentation.

    Attributes:
        start: (L, R + 1) int32; ring r of leaf l is ``pixels[start[l, r]:start[l, r + 1]]``. Ring 0 are the edge
            pixels, those with a 4-neighbour in another segment; each next ring touches the one before.
        pixels: Numbers 0..255 of the pixels, uint8.
    """

    start: np.ndarray
    pixels: np.ndarray


class Outlines(NamedTuple):
    """What a vote reads of segmentations, each in one piece of memory.

    Sums over a segment are sums of an integral image at the segment's corners.

    Attributes:
        table: (L, 3) uint64: where a segmentation begins in ``data``, its segments, and its pixels that may move; the
            latter is 0 where there is no edge, of which ``data`` has nothing.
        data: uint8. The segment of each of 256 pixels; the numbers of the pixels that may move, ring by ring; and of
            each segment but the last size, number of corners (low byte, high byte), and corners: row 0..16, column
            0..16, and 2 more than how often that which lies above and left of it is added, -2..2.
    """

    table: np.ndarray
    data: np.ndarray


def outlines_of(segments: np.ndarray, rings: int) -> Outlines:
    """Those of segmentations (L, 256) uint8, numbered 0, 1, ... without a gap, whose first ``rings`` may move."""
    near, table = rings_of(segments, rings), np.zeros((len(segments), 3), np.uint64)
    size = _write(segments, near, table, np.empty(0, np.uint8))
    data = np.empty(size, np.uint8)
    _write(segments, near, table, data)
    return Outlines(table, data)


@compiled
def _write(segments: np.ndarray, near: Rings, table: np.ndarray, data: np.ndarray) -> int:
    """Fill in ``table`` and, where there is room, ``data``; how much room they need."""
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
