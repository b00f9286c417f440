"""Edge maps from a structured forest (Dollar & Zitnick 2015, Sec. 4): the patch at every second pixel votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from ldl.edges.structured.channels import (
    CHANNELS,
    CONTRAST_FLOOR,
    LABEL,
    PATCH,
    SHRINK,
    SIDE,
    Bands,
    blur,
    blur_channels,
    blur_rows,
    feature_places,
    in_bands,
    luv,
    make_channels,
    one_band,
    sum_up,
)
from ldl.edges.structured.forest import EdgeForest
from ldl.edges.structured.neighbours import PatchNeighbours
from ldl.edges.structured.voting import outlines_of, vote
from ldl.methods.numba_kernels import compiled

PAD = PATCH // 2 + LABEL // 2
"""Padding of the image, in pixels, with which each of its pixels gets votes from the same number of patches."""
STRIP = 80
"""Cells per line of the strips in which an image of any width is processed."""
PLANES = 2 * CHANNELS + 1
"""Lines for each row of a strip: the feature maps and one line of zeros."""
NONE = 2**32 - 1


class Nodes(NamedTuple):
    """The nodes of a forest, each in one piece of memory: 16 bytes for a node with one feature.

    Attributes:
        roots: (T,) uint32.
        whole: (M, 2 + 2 D) uint32. The left child, which the right child follows (in a leaf its number); the threshold;
            then for each feature two offsets of 16 bits each, ``NONE`` in a leaf, and its weight. The offsets are the
            positions in a strip, relative to the first cell of the patch, of the value and of the subtracted value,
            which is a zero for plain values.
        real: The same memory as float32, for threshold and weights.
    """

    roots: np.ndarray
    whole: np.ndarray
    real: np.ndarray


def pack(forest: EdgeForest, merge: bool) -> Nodes:
    """Pack the nodes of a forest; with ``merge``, a node becomes a leaf if all leaves below it have no edge."""
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
    """Return children (M,) and inner nodes (M,) after nodes above ``flat`` leaves (L,) only have become leaves.

    Grown trees have children after their parents. In a tree with another order, fewer nodes are merged.
    """
    child, inner = child.copy(), inner.copy()
    for node in range(len(child) - 1, -1, -1):
        left, right = child[node], child[node] + 1
        if inner[node] and not inner[left] and not inner[right] and flat[child[left]] and flat[child[right]]:
            child[node], inner[node] = child[left], False
    return child, inner


@compiled
def find_leaves(maps: np.ndarray, nodes: Nodes, leaves: np.ndarray, low: int, high: int) -> None:
    """Fill the ``leaves`` (rows, columns, votes) int32 that patches reach, from row ``low`` to ``high - 1``.

    Each place queries the trees that follow those of its left and upper neighbours, cyclically: a checkerboard if
    ``votes`` is half of the trees. ``maps`` are those of :func:`.channels.feature_maps`. All walks of a line step down
    one node at a time, so that no walk waits for the memory that another walk reads.
    """
    _, columns, votes = leaves.shape
    roots, whole, real = nodes
    span = STRIP - SIDE + 1
    # Unsigned indices spare numba the check for negative ones.
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
                turn = votes * (row + left + i // votes) + i % votes
                node[i], walking[count] = roots[turn % len(roots)], i
                count += np.uint64(whole[node[i], 2] != none)
            while count > 0:
                still = np.uint64(0)
                for k in range(count):
                    i = walking[k]
                    current, at = node[i], line + column_of[i]
                    pair = whole[current, 2]
                    total = real[current, 3] * (values[at + (pair & low_bits)] - values[at + (pair >> high_bits)])
                    for term in range(4, whole.shape[1], 2):
                        pair = whole[current, term]
                        value = values[at + (pair & low_bits)] - values[at + (pair >> high_bits)]
                        total += real[current, term + 1] * value
                    current = whole[current, 0] + np.uint32(total > real[current, 1])
                    node[i], walking[still] = current, i
                    still += np.uint64(whole[current, 2] != none)
                count = still
            for i in range(here * votes):
                leaves[row, left + column_of[i], i % votes] = whole[node[i], 0]


@dataclass
class EdgeDetector:
    """A trained forest, ready for images.

    Arguments that are not listed are options of :class:`ldl.edges.StructuredEdges`.

    Args:
        forest: The forest.
        neighbours: Weights of the training patches that the leaves keep; None lets one patch of each leaf vote.
        threads: Number of bands of an image that are processed at a time, which does not affect the result.
    """

    forest: EdgeForest
    votes: int
    sharpen: int
    scales: Sequence[float]
    gain: float
    neighbours: PatchNeighbours | None = None
    threads: int = 1
    floor: float = CONTRAST_FLOOR
    mirror: bool = False

    def __post_init__(self) -> None:
        self.nodes = pack(self.forest, merge=self.neighbours is None)
        segments = self.neighbours.kept.segments if self.neighbours else self.forest.segments
        self.outlines = outlines_of(segments, max(self.sharpen, 1))

    def detect(self, image: np.ndarray) -> np.ndarray:
        """Return how likely each pixel of (H, W, 3) uint8 RGB is an edge: (H, W) float32 in [0, 1], not suppressed."""
        strengths = self._detect_scales(image)
        if self.mirror:
            strengths = (strengths + self._detect_scales(np.ascontiguousarray(image[:, ::-1]))[:, ::-1]) / 2
        return strengths

    def _detect_scales(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        total = np.zeros((height, width), np.float32)
        for scale in self.scales:
            size = max(1, round(width * scale)), max(1, round(height * scale))
            resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
            total += cv2.resize(self._detect_once(resized), (width, height), interpolation=cv2.INTER_LINEAR)
        return total / len(self.scales)

    def _detect_once(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        below, beside = PAD + -(height + 2 * PAD) % (2 * SHRINK), PAD + -(width + 2 * PAD) % (2 * SHRINK)
        padded = cv2.copyMakeBorder(image, PAD, below, PAD, beside, cv2.BORDER_REFLECT)
        with in_bands(self.threads) as bands:
            colour = luv(padded, bands)
            maps = blur_channels(make_channels(colour, bands, self.floor), bands)
            leaves = self.find_leaves(maps, bands)
            if self.neighbours:
                voters, weights = self.neighbours.weigh(leaves, maps)
            else:
                voters, weights = leaves, np.full(leaves.shape, np.float32(1 / leaves.shape[2]))
            votes = self._vote(voters, weights, colour, bands)
        each = (LABEL // SHRINK) ** 2
        votes = blur(votes[None], 1)[0, PAD : PAD + height, PAD : PAD + width]
        # The weights of DSNA may be negative.
        return np.clip(votes * np.float32(self.gain / each), 0, 1)

    def find_leaves(self, maps: np.ndarray, bands: Bands = one_band) -> np.ndarray:
        """Return the leaves that the patch at each cell reaches, (rows, columns, votes) int32.

        Without ``neighbours``, a leaf without an edge may stand for adjacent leaves without one.
        """
        rows, columns = (size - SIDE + 1 for size in maps.shape[1:])
        leaves = np.empty((rows, columns, self.votes), np.int32)
        bands(find_leaves, rows, maps, self.nodes, leaves)
        return leaves

    def _vote(self, voters: np.ndarray, weights: np.ndarray, colour: np.ndarray, bands: Bands) -> np.ndarray:
        """Return the votes of the segmentations at each cell for each pixel of CIE-LUV (3, H, W)."""
        smooth, votes = np.empty_like(colour), np.zeros(colour.shape[1:], np.float32)
        bands(blur_rows, len(votes), colour, 1, smooth)
        bands(vote, len(votes), voters, weights, self.outlines, smooth, sum_up(smooth), self.sharpen, votes)
        return votes
