"""The two classes of a node of segmentations, and the one that stands for them (Dollar & Zitnick 2015, Sec. 3.2).

A segmentation of 16 x 16 pixels becomes a code of 0 and 1: whether the two pixels of each of 256 random pairs lie in
the same segment. The sign of the codes' first principal component parts them.
"""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.forest.draws import next_bits
from ldl.methods.forest.vectors import add_row, dot

PAIRS = 256
SAMPLE = 1024
"""Larger nodes find their principal component from so many segmentations, drawn at random."""
ROUNDS = 12
"""Steps of the power iteration."""


@inlined
def draw_pairs(pixels: int, state: np.ndarray, pairs: np.ndarray) -> None:
    """Fill in (P, 2) int32: random pairs of different pixels out of ``pixels``."""
    for p in range(len(pairs)):
        one = int(next_bits(state) % np.uint64(pixels))
        two = int(next_bits(state) % np.uint64(pixels - 1))
        pairs[p, 0], pairs[p, 1] = one, two + (two >= one)


@compiled
def two_classes(
    segments: np.ndarray, rows: np.ndarray, pairs: np.ndarray, codes: np.ndarray, state: np.ndarray, labels: np.ndarray
) -> int:
    """The class of each segmentation of a node: the sign of its first principal component.

    Those of the ``rows`` (n,) of (N, S) uint8 are written into ``labels``, (at least n) uint8. Pixels are compared by
    ``pairs`` (P, 2); ``codes`` (at least min(n, 1024), P) float32 are scratch. Returns how many are in class 1: 0 where
    all codes are equal, else neither 0 nor n, but for rounding.
    """
    count, width = len(rows), len(pairs)
    size = min(count, SAMPLE)
    mean = np.zeros(width, np.float32)
    for i in range(size):
        row = rows[i] if count == size else rows[int(next_bits(state) % np.uint64(count))]
        for p in range(width):
            same = np.float32(segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]])
            codes[i, p] = same
            mean[p] += same
    longest, start = np.float32(0), 0
    for p in range(width):
        mean[p] /= size
    for i in range(size):
        for p in range(width):
            codes[i, p] -= mean[p]
        length = dot(codes[i], codes[i])
        if length > longest:
            longest, start = length, i
    if longest == 0:
        return 0
    # From the code farthest from the mean: it is never orthogonal to all of the variance.
    direction = codes[start].copy()
    following = np.empty(width, np.float32)
    for _ in range(ROUNDS):
        following[:] = 0
        for i in range(size):
            add_row(following, codes[i], dot(codes[i], direction))
        scale = np.float32(1 / np.sqrt(dot(following, following)))
        for p in range(width):
            direction[p] = following[p] * scale
    offset = dot(mean, direction)
    ones = 0
    for i in range(count):
        score = np.float32(0)
        for p in range(width):
            if segments[rows[i], pairs[p, 0]] == segments[rows[i], pairs[p, 1]]:
                score += direction[p]
        labels[i] = score > offset
        ones += labels[i]
    return ones


@compiled
def middle_segments(segments: np.ndarray, rows: np.ndarray, pairs: np.ndarray) -> int:
    """Of the rows of a node, the one whose code is nearest to the mean code; the first of them."""
    count, width = len(rows), len(pairs)
    mean = np.zeros(width)
    for row in rows:
        for p in range(width):
            mean[p] += segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]]
    least, middle = np.inf, rows[0]
    for row in rows:
        away = 0.0
        for p in range(width):
            same = segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]]
            away += (same - mean[p] / count) ** 2
        if away < least:
            least, middle = away, row
    return middle
