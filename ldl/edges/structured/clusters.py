"""More than two classes of a node of segmentations: k-means of their leading principal components.

Dollar & Zitnick 2015, Sec. 3.2: the codes of :mod:`ldl.edges.structured.relabel` in at most 5 principal components. The
first clusters are the signs of the leading components.
"""

from __future__ import annotations

import numpy as np

from ldl.edges.structured.relabel import ROUNDS, SAMPLE
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.draws import next_bits
from ldl.methods.forest.vectors import add_row, dot

COMPONENTS = 5
STEPS = 3
"""Rounds of k-means."""


@compiled
def many_classes(
    segments: np.ndarray,
    rows: np.ndarray,
    pairs: np.ndarray,
    codes: np.ndarray,
    state: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Fill in the class 0..K - 1 of each segmentation of a node and ``counts`` (K,) int64; some may stay empty.

    The other arguments are those of :func:`.relabel.two_classes`.
    """
    count, width, classes = len(rows), len(pairs), len(counts)
    size = min(count, SAMPLE)
    mean = np.zeros(width, np.float32)
    for i in range(size):
        row = rows[i] if count == size else rows[int(next_bits(state) % np.uint64(count))]
        for p in range(width):
            codes[i, p] = segments[row, pairs[p, 0]] == segments[row, pairs[p, 1]]
        add_row(mean, codes[i], np.float32(1 / size))
    for i in range(size):
        add_row(codes[i], mean, np.float32(-1))
    axes = _principal_axes(codes[:size], COMPONENTS)
    places = np.empty((count, len(axes)), np.float32)
    code = np.empty(width, np.float32)
    bits = 0
    while 2 << bits <= classes and bits < len(axes):
        bits += 1
    for i in range(count):
        for p in range(width):
            code[p] = (segments[rows[i], pairs[p, 0]] == segments[rows[i], pairs[p, 1]]) - mean[p]
        labels[i] = 0
        for a in range(len(axes)):
            places[i, a] = dot(axes[a], code)
            if a < bits:
                labels[i] |= (places[i, a] > 0) << a
    # A number of classes that is no power of two begins with some rows drawn at random.
    for k in range(1 << bits, classes):
        labels[int(next_bits(state) % np.uint64(count))] = k
    _settle(places, labels, counts)


@compiled
def _principal_axes(centred: np.ndarray, most: int) -> np.ndarray:
    """Leading principal axes (at most ``most``, P) of centred rows (n, P) float32, which are left without them."""
    axes = np.zeros((most, centred.shape[1]), np.float32)
    for a in range(most):
        longest, start = np.float32(1e-6), -1
        for i in range(len(centred)):
            length = dot(centred[i], centred[i])
            if length > longest:
                longest, start = length, i
        if start < 0:
            return axes[:a]
        axes[a] = centred[start]
        following = np.empty_like(axes[a])
        for _ in range(ROUNDS):
            following[:] = 0
            for i in range(len(centred)):
                add_row(following, centred[i], dot(centred[i], axes[a]))
            axes[a] = following / np.sqrt(dot(following, following))
        for i in range(len(centred)):
            add_row(centred[i], axes[a], -dot(centred[i], axes[a]))
    return axes


@compiled
def _settle(places: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> None:
    """Some rounds of k-means from the clusters in ``labels`` (n,); ``counts`` (K,) are filled in."""
    classes, size = len(counts), places.shape[1]
    centres = np.empty((classes, size), np.float32)
    for step in range(STEPS + 1):
        counts[:] = 0
        centres[:] = 0
        for i in range(len(places)):
            counts[labels[i]] += 1
            for a in range(size):
                centres[labels[i], a] += places[i, a]
        if step == STEPS:
            break
        for k in range(classes):
            for a in range(size):
                centres[k, a] /= max(counts[k], 1)
        for i in range(len(places)):
            least = np.float32(np.inf)
            for k in range(classes):
                if counts[k] == 0:
                    continue
                away = np.float32(0)
                for a in range(size):
                    away += (places[i, a] - centres[k, a]) ** 2
                if away < least:
                    least, labels[i] = away, k
