"""Which leaves the patches of an image reach."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.channels import CHANNELS, SIDE, feature_places
from ldl.edges.structured.forest import EdgeForest
from ldl.methods.forest.compiled import compiled

STRIP = 80
"""Cells of a line of the strips in which an image is walked through, whatever its width."""
PLANES = 2 * CHANNELS + 1
"""Lines for each row of a strip: those of the feature maps, and one of zeros."""
NONE = 2**32 - 1


class Nodes(NamedTuple):
    """The nodes of a forest, each in one piece of memory: 16 bytes where it looks at one feature.

    Attributes:
        roots: (T,) uint32.
        whole: (M, 2 + 2 D) uint32. The left child, which the right one follows (of a leaf its number); the threshold;
            and for each feature where in a strip, seen from the patch's first cell, its value lies, and that which is
            subtracted (a zero where nothing is), 16 bits each, ``NONE`` in a leaf; and its weight.
        real: The same memory as float32, for threshold and weights.
    """

    roots: np.ndarray
    whole: np.ndarray
    real: np.ndarray


def pack(forest: EdgeForest, merge: bool) -> Nodes:
    """The nodes of a forest; with ``merge`` a node becomes a leaf where none of the leaves below it has an edge."""
    places, feature = feature_places(), forest.feature
    first, second = (
        (where[feature, 0] * PLANES + places.map[feature]) * STRIP + where[feature, 1]
        for where in (places.first, places.second)
    )
    second = np.where(places.second[feature, 0] < 0, (PLANES - 1) * STRIP, second)
    child, inner = forest.child, feature[:, 0] >= 0
    if merge:
        child, inner = merge_flat(child, inner, forest.segments.max(1) == 0)
    whole = np.empty((len(feature), 2 + 2 * feature.shape[1]), np.uint32)
    real = whole.view(np.float32)
    whole[:, 0], real[:, 1], real[:, 3::2] = child, forest.threshold, forest.weight
    whole[:, 2::2] = np.where(inner[:, None], first + (second << 16), NONE)
    return Nodes(forest.roots.astype(np.uint32), whole, real)


@compiled
def merge_flat(child: np.ndarray, inner: np.ndarray, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Children (M,) and which nodes are inner ones (M,), where nodes above ``flat`` leaves (L,) alone are leaves.

    Trees that were grown have children after their parents; where they are not, less is merged.
    """
    child, inner = child.copy(), inner.copy()
    for node in range(len(child) - 1, -1, -1):
        left, right = child[node], child[node] + 1
        if inner[node] and not inner[left] and not inner[right] and flat[child[left]] and flat[child[right]]:
            child[node], inner[node] = child[left], False
    return child, inner


@compiled
def find_leaves(maps: np.ndarray, nodes: Nodes, leaves: np.ndarray, low: int, high: int) -> None:
    """Fill in the ``leaves`` (rows, columns, votes) int32 that patches reach, from row ``low`` up to ``high``.

    Each place asks the trees that follow those of its left and upper neighbours, in a circle: a checkerboard where the
    votes are half of the trees. ``maps`` are those of :func:`.channels.feature_maps`.

    All walks of a line go down one node at a time: none waits for the memory that another one reads.
    """
    _, columns, votes = leaves.shape
    roots, whole, real = nodes
    span = STRIP - SIDE + 1
    # Unsigned numbers need no look at whether they count from the end.
    node, column_of, walking = np.empty((3, span * votes), np.uint32)
    for i in range(span * votes):
        column_of[i] = i // votes
    strip = np.zeros((high - low + SIDE - 1, PLANES, STRIP), np.float32)
    values = strip.reshape(-1)
    none, low_bits, high_bits = np.uint32(NONE), np.uint32(2**16 - 1), np.uint32(16)
    for left in range(0, columns, span):
        here = min(span, columns - left)
        for y in range(len(strip)):
            for m in range(PLANES - 1):
                for x in range(here + SIDE - 1):
                    strip[y, m, x] = maps[m, low + y, left + x]
        for row in range(low, high):
            line = np.uint64((row - low) * (PLANES * STRIP))
            count = np.uint64(0)
            for i in range(here * votes):
                place = votes * (row + left + i // votes) + i % votes
                node[i], walking[count] = roots[place % len(roots)], i
                count += np.uint64(whole[node[i], 2] != none)
            while count > 0:
                still = np.uint64(0)
                for k in range(count):
                    i = walking[k]
                    own, at = node[i], line + column_of[i]
                    pair = whole[own, 2]
                    total = real[own, 3] * (values[at + (pair & low_bits)] - values[at + (pair >> high_bits)])
                    for term in range(4, whole.shape[1], 2):
                        pair = whole[own, term]
                        value = values[at + (pair & low_bits)] - values[at + (pair >> high_bits)]
                        total += real[own, term + 1] * value
                    own = whole[own, 0] + np.uint32(total > real[own, 1])
                    node[i], walking[still] = own, i
                    still += np.uint64(whole[own, 2] != none)
                count = still
            for i in range(here * votes):
                leaves[row, left + column_of[i], i % votes] = whole[node[i], 0]
