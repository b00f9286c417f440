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
TERM = 3
"""Numbers of a feature in a node: what is added, what is subtracted, weight."""


class Nodes(NamedTuple):
    """The nodes of a forest, each in one piece of memory.

    Attributes:
        roots: (T,) int32.
        whole: (M, 2 + 3 D) int32. The left child, which the right one follows (of a leaf its number); the threshold;
            and for each feature where in a strip it finds its value, seen from the patch's first cell, -1 in a leaf,
            where that which is subtracted (a zero where nothing is), and its weight.
        real: The same memory as float32, for threshold and weights.
    """

    roots: np.ndarray
    whole: np.ndarray
    real: np.ndarray


def pack(forest: EdgeForest) -> Nodes:
    """The nodes of a forest."""
    places, feature = feature_places(), forest.feature
    first, second = (
        (places.first if own else places.second)[feature, 0] * (PLANES * STRIP)
        + (places.first if own else places.second)[feature, 1]
        + places.map[feature] * STRIP
        for own in (True, False)
    )
    whole = np.empty((len(feature), 2 + TERM * feature.shape[1]), np.int32)
    real = whole.view(np.float32)
    whole[:, 0], real[:, 1] = forest.child, forest.threshold
    whole[:, 2::TERM] = np.where(feature < 0, -1, first)
    whole[:, 3::TERM] = np.where(places.second[feature, 0] < 0, (PLANES - 1) * STRIP, second)
    real[:, 4::TERM] = forest.weight
    return Nodes(np.ascontiguousarray(forest.roots), whole, real)


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
    node, column_of, walking = np.empty((3, span * votes), np.int32)
    for i in range(span * votes):
        column_of[i] = i // votes
    strip = np.zeros((high - low + SIDE - 1, PLANES, STRIP), np.float32)
    values = strip.reshape(-1)
    for left in range(0, columns, span):
        here = min(span, columns - left)
        for y in range(len(strip)):
            for m in range(PLANES - 1):
                for x in range(here + SIDE - 1):
                    strip[y, m, x] = maps[m, low + y, left + x]
        for row in range(low, high):
            line = (row - low) * (PLANES * STRIP)
            count = 0
            for i in range(here * votes):
                column = left + column_of[i]
                node[i] = roots[(votes * (row + column) + i % votes) % len(roots)]
                walking[count] = i
                count += whole[node[i], 2] >= 0
            while count > 0:
                still = 0
                for k in range(count):
                    i = walking[k]
                    at, own = line + column_of[i], node[i]
                    total = np.float32(0)
                    for term in range(2, whole.shape[1], TERM):
                        value = values[at + whole[own, term]] - values[at + whole[own, term + 1]]
                        total += real[own, term + 2] * value
                    own = whole[own, 0] + (total > real[own, 1])
                    node[i], walking[still] = own, i
                    still += whole[own, 2] >= 0
                count = still
            for i in range(here * votes):
                leaves[row, left + column_of[i], i % votes] = whole[node[i], 0]
