"""Matching the edge pixels of a map with those that annotators drew, at every threshold.

A pair of pixels at distance d, at most ``reach`` apart, costs d. A pixel without a partner costs its share of the
outlier cost, so every pair gains ``OUTLIER * reach - d``. The assignment maximises the total gain (Martin, Fowlkes &
Malik, PAMI 2004, who cut the graph to a few random neighbours to make that feasible).

The solution is kept with its dual prices, which prove it optimal: price(a) + price(b) is at least the gain of every
pair, and equal to it for assigned pairs, and a pixel without a partner has price 0. When a pixel is added or removed,
one search for the shortest augmenting path restores that. Maps at neighbouring thresholds differ in few pixels, so a
hundred of them cost little more than one.

Pixels are numbers in flat maps with a margin of ``margin`` empty pixels on every side.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from ldl.edges.benchmark.ground_truth import check_same_size
from ldl.edges.benchmark.thinning import thin_listed
from ldl.errors import LDLError
from ldl.methods.numba_kernels import compiled, inlined

MAX_DIST = 0.0075
"""Maximum distance of corresponding pixels, as a share of the image's diagonal (benchmark of BSDS500)."""
OUTLIER = 100
"""Cost of a pixel without a partner, in units of the greatest distance."""
STRENGTH_ROUNDING = 1e-6
"""Tolerance of strengths around 0..1, for sums in 32 bits."""
_UNIT = 1 << 40
"""One pixel of distance in gains, which are integers so that sums are exact."""
_TIES = (1 << 20) - 1
"""Equal distances differ by at most this, as a function of the pair, so that the best assignment is unique."""
_FAR = 1 << 62


class Neighbours(NamedTuple):
    """The pixels within reach of a pixel.

    Attributes:
        margin: Width of the empty margin that maps need.
        offsets: (K,) differences of pixel numbers, the nearest first.
        gains: (K,) gain of a pair.
    """

    margin: int
    offsets: np.ndarray
    gains: np.ndarray


class Side(NamedTuple):
    """One of the two maps, as flat arrays over its pixels.

    Attributes:
        present: Whether there is an edge.
        mate: The assigned pixel, or -1.
        price: The dual price.
    """

    present: np.ndarray
    mate: np.ndarray
    price: np.ndarray


class Scratch(NamedTuple):
    """Memory of the search, flat arrays over pixels: length of the shortest path, and the pixel before."""

    length: np.ndarray
    before: np.ndarray


def neighbours(reach: float, width: int) -> Neighbours:
    """Return the pixels at most ``reach`` away in maps of ``width`` pixels per line, without the margin."""
    margin = math.ceil(reach)
    y, x = np.mgrid[-margin : margin + 1, -margin : margin + 1].reshape(2, -1)
    squared = y * y + x * x
    order = np.argsort(squared, kind="stable")
    order = order[squared[order] <= reach * reach]
    offsets = y[order] * (width + 2 * margin) + x[order]
    gains = np.round((OUTLIER * reach - np.sqrt(squared[order])) * _UNIT).astype(np.int64)
    return Neighbours(margin, offsets, gains)


@compiled
def new_scratch(size: int) -> Scratch:
    """Return memory of the search for maps of ``size`` pixels including their margin."""
    return Scratch(np.full(size, np.int64(_FAR)), np.empty(size, np.int64))


@inlined
def _gain(near: Neighbours, k: int, pixel: int, partner: int, swapped: bool) -> int:
    first, second = (partner, pixel) if swapped else (pixel, partner)
    mixed = (np.uint64(first) << np.uint64(32) | np.uint64(second)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return near.gains[k] + np.int64(mixed >> np.uint64(44) & np.uint64(_TIES))


@compiled
def enter(pixel: int, side: Side, other: Side, near: Neighbours, scratch: Scratch, swapped: bool) -> None:
    """Add a present pixel of side ``side`` without a partner, and make the assignment optimal again.

    ``swapped`` is whether ``side`` is the second side; pixels ``near`` are within reach.
    """
    price = 0
    for k in range(len(near.offsets)):
        b = pixel + near.offsets[k]
        if other.present[b]:
            price = max(price, _gain(near, k, pixel, b, swapped) - other.price[b])
    side.price[pixel] = price
    if price == 0:
        return
    length, before = scratch.length, scratch.before
    # Shortest paths over reduced costs, to a free pixel of the other side, or to a pixel of this side to be freed.
    best, end, loser = price, -1, pixel
    reached = [pixel][:0]  # numba infers the type of the entries
    heap = [(0, pixel)]
    while len(heap) > 0:
        so_far, a = heapq.heappop(heap)
        if so_far >= best:
            break
        mate = side.mate[a]
        if mate >= 0 and length[mate] < so_far:
            continue
        for k in range(len(near.offsets)):
            b = a + near.offsets[k]
            if not other.present[b] or b == mate:
                continue
            through = so_far + side.price[a] + other.price[b] - _gain(near, k, a, b, swapped)
            if through >= min(best, length[b]):
                continue
            if length[b] == _FAR:
                reached.append(b)
            length[b], before[b] = through, a
            partner = other.mate[b]
            if partner < 0:
                best, end = through, b
            else:
                heapq.heappush(heap, (through, partner))
                if through + side.price[partner] < best:
                    best, end, loser = through + side.price[partner], b, partner
    side.price[pixel] -= best
    for b in reached:
        if length[b] < best:
            other.price[b] += best - length[b]
            side.price[other.mate[b]] -= best - length[b]
        length[b] = _FAR
    if end < 0:
        return
    if other.mate[end] >= 0:
        side.mate[loser] = -1
    while True:
        a = before[end]
        following = side.mate[a]
        side.mate[a], other.mate[end] = end, a
        if a == pixel:
            return
        end = following


@compiled
def leave(pixel: int, side: Side, other: Side, near: Neighbours, scratch: Scratch, swapped: bool) -> None:
    """Remove a present pixel and make the assignment optimal again; arguments as in :func:`enter`."""
    mate = side.mate[pixel]
    side.present[pixel], side.mate[pixel], side.price[pixel] = False, -1, 0
    if mate >= 0:
        other.mate[mate] = -1
        enter(mate, other, side, near, scratch, not swapped)


class Counts(NamedTuple):
    """Numbers of pixels at each of T thresholds, (T,) int64 each; (N, T) for several images.

    Attributes:
        recalled: Annotators' edge pixels with a counterpart in the map, summed over annotators.
        drawn: Annotators' edge pixels.
        correct: Edge pixels of the map with a counterpart of at least one annotator.
        detected: Edge pixels of the map.
    """

    recalled: np.ndarray
    drawn: np.ndarray
    correct: np.ndarray
    detected: np.ndarray


def count(
    strength: np.ndarray, boundaries: np.ndarray, thresholds: np.ndarray, max_dist: float = MAX_DIST,
    thinning: bool = True,
) -> Counts:  # fmt: skip
    """Compare one edge map with the annotators of its image.

    Args:
        strength: (H, W) edge strength, in 0..1.
        boundaries: (A, H, W) bool, the drawing of each annotator.
        thresholds: (T,) rising; a pixel is an edge if its strength is at least the threshold.
        max_dist: See :data:`MAX_DIST`.
        thinning: Thin the map at every threshold.

    Raises:
        LDLError: Sizes differ, thresholds do not rise, or strengths are not in 0..1.
    """
    fix = "evaluate at the size of the image"
    check_same_size("edge map and ground truth", strength.shape, boundaries.shape[1:], fix)
    if not np.isfinite(strength).all():
        raise LDLError("the edge map holds NaN or infinity; strengths must be numbers in 0..1")
    low, high = strength.min(initial=0), strength.max(initial=0)
    if low < -STRENGTH_ROUNDING or high > 1 + STRENGTH_ROUNDING:
        wrong = low if low < -STRENGTH_ROUNDING else high
        raise LDLError(f"the edge map holds {wrong:g}; strengths must be in 0..1: divide those of 8 bits by 255")
    if not len(thresholds) or not (np.diff(thresholds) > 0).all():
        raise LDLError(f"thresholds must rise and be at least one, got {np.asarray(thresholds).tolist()[:8]}")
    if not 0 < max_dist < 0.1:
        raise LDLError(f"max_dist {max_dist!r} must be in 0..0.1, a share of the image's diagonal")
    height, width = strength.shape
    near = neighbours(max_dist * np.hypot(height, width), width)
    beside = (near.margin, near.margin)
    padded = np.pad(np.searchsorted(thresholds, strength, side="right").astype(np.int32), near.margin)
    drawn = np.pad(boundaries, ((0, 0), beside, beside))
    recalled, correct, detected = _count(
        padded.ravel(), drawn.reshape(len(drawn), -1), len(thresholds), padded.shape[1], near, thinning
    )
    return Counts(recalled, np.full(len(thresholds), boundaries.sum()), correct, detected)


@compiled
def _count(
    levels: np.ndarray, drawn: np.ndarray, thresholds: int, width: int, near: Neighbours, thinning: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count for ``levels``, the number of thresholds at which a pixel is an edge; maps are flat with their margin."""
    annotators, size = drawn.shape
    # For each annotator: the map's side of the assignment, then the annotator's side.
    present, mate = np.zeros((annotators, 2, size), np.bool_), np.full((annotators, 2, size), -1)
    price = np.zeros((annotators, 2, size), np.int64)
    present[:, 1] = drawn
    scratch = new_scratch(size)
    edge, pixels, before = np.zeros(size, np.bool_), np.empty(size, np.int64), np.empty(0, np.int64)
    recalled, correct, detected = np.zeros((3, thresholds), np.int64)
    for t in range(thresholds - 1, -1, -1):
        n = 0
        for p in range(size):
            if levels[p] > t:
                edge[p], pixels[n] = True, p
                n += 1
        if thinning:
            n = thin_listed(edge, width, pixels, n)
        for a in range(annotators):
            side = Side(present[a, 0], mate[a, 0], price[a, 0])
            other = Side(present[a, 1], mate[a, 1], price[a, 1])
            for p in before:
                if not edge[p]:
                    leave(p, side, other, near, scratch, False)
            for p in pixels[:n]:
                if not side.present[p]:
                    side.present[p] = True
                    enter(p, side, other, near, scratch, False)
            for p in pixels[:n]:
                recalled[t] += side.mate[p] >= 0
        before = pixels[:n].copy()
        detected[t] = n
        for p in before:
            edge[p] = False
            correct[t] += (mate[:, 0, p] >= 0).any()
    return recalled, correct, detected
