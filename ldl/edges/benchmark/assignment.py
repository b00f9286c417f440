"""Which edge pixels of two maps correspond: an exact assignment of least cost that follows changes of one map.

A pair of pixels at distance d, at most ``reach`` apart, costs d; a pixel that stays alone costs its share of the
outlier cost, so that every pair gains ``OUTLIER * reach - d``. An assignment is sought whose total gain is greatest
(Martin, Fowlkes & Malik, PAMI 2004, where the graph is cut to a few random neighbours to make that feasible).

The solution is kept with its dual prices, which prove it optimal: price(a) + price(b) is at least the gain of every
pair, equal to it for assigned pairs, and a pixel without partner has price 0. When a pixel comes or goes, one search
for the shortest augmenting path restores that. Maps at neighbouring thresholds differ by few pixels, so a hundred of
them cost little more than one.

Pixels are numbers in flat maps with a margin of ``margin`` empty pixels on every side.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from ldl.methods.forest.compiled import compiled, inlined

OUTLIER = 100
"""Cost of a pixel without partner, in units of the greatest distance."""

_UNIT = 1 << 40
"""Gains are whole numbers, so that sums are exact: this is one pixel of distance."""

_TIES = (1 << 20) - 1
"""Equal distances are told apart by up to this much, drawn from the pair: the best assignment is then unique."""

_FAR = 1 << 62


class Neighbours(NamedTuple):
    """The pixels within reach of a pixel.

    Attributes:
        margin: Width of the empty margin that maps need.
        offsets: (K,) what to add to a pixel's number, the nearest first.
        gains: (K,) gain of a pair.
    """

    margin: int
    offsets: np.ndarray
    gains: np.ndarray


class Side(NamedTuple):
    """One of the two maps, as flat arrays over its pixels.

    Attributes:
        present: Whether there is an edge.
        mate: The pixel it is assigned to, or -1.
        price: Its dual price.
    """

    present: np.ndarray
    mate: np.ndarray
    price: np.ndarray


class Scratch(NamedTuple):
    """Memory of the search, as flat arrays over pixels: length of the shortest path, and the pixel before."""

    length: np.ndarray
    before: np.ndarray


def neighbours(reach: float, width: int) -> Neighbours:
    """The pixels at most ``reach`` away, in maps of ``width`` pixels a line before the margin is added."""
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
    """Memory of the search, for maps of ``size`` pixels with their margin."""
    return Scratch(np.full(size, np.int64(_FAR)), np.empty(size, np.int64))


@inlined
def _gain(near: Neighbours, k: int, own: int, other: int, swapped: bool) -> int:
    first, second = (other, own) if swapped else (own, other)
    mixed = (np.uint64(first) << np.uint64(32) | np.uint64(second)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return near.gains[k] + np.int64(mixed >> np.uint64(44) & np.uint64(_TIES))


@compiled
def enter(pixel: int, own: Side, other: Side, near: Neighbours, scratch: Scratch, swapped: bool) -> None:
    """Let a present pixel of side ``own`` without partner compete, and make the assignment optimal again.

    ``swapped`` says whether ``own`` is the second side; pixels ``near`` are within reach.
    """
    price = 0
    for k in range(len(near.offsets)):
        b = pixel + near.offsets[k]
        if other.present[b]:
            price = max(price, _gain(near, k, pixel, b, swapped) - other.price[b])
    own.price[pixel] = price
    if price == 0:
        return
    length, before = scratch.length, scratch.before
    # Shortest paths over reduced costs, to a free pixel of the other side, or to one of this side that gives way.
    best, end, loser = price, -1, pixel
    reached = [pixel][:0]  # numba takes the type of its entries from this one
    heap = [(0, pixel)]
    while len(heap) > 0:
        so_far, a = heapq.heappop(heap)
        if so_far >= best:
            break
        mate = own.mate[a]
        if mate >= 0 and length[mate] < so_far:
            continue
        for k in range(len(near.offsets)):
            b = a + near.offsets[k]
            if not other.present[b] or b == mate:
                continue
            through = so_far + own.price[a] + other.price[b] - _gain(near, k, a, b, swapped)
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
                if through + own.price[partner] < best:
                    best, end, loser = through + own.price[partner], b, partner
    own.price[pixel] -= best
    for b in reached:
        if length[b] < best:
            other.price[b] += best - length[b]
            own.price[other.mate[b]] -= best - length[b]
        length[b] = _FAR
    if end < 0:
        return
    if other.mate[end] >= 0:
        own.mate[loser] = -1
    while True:
        a = before[end]
        following = own.mate[a]
        own.mate[a], other.mate[end] = end, a
        if a == pixel:
            return
        end = following


@compiled
def leave(pixel: int, own: Side, other: Side, near: Neighbours, scratch: Scratch, swapped: bool) -> None:
    """Take a present pixel away, and make the assignment optimal again. Arguments as in :func:`enter`."""
    mate = own.mate[pixel]
    own.present[pixel], own.mate[pixel], own.price[pixel] = False, -1, 0
    if mate >= 0:
        other.mate[mate] = -1
        enter(mate, other, own, near, scratch, not swapped)


def correspond(first: np.ndarray, second: np.ndarray, reach: float) -> np.ndarray:
    """Assign the edge pixels of one map to those of another.

    Args:
        first: (H, W) bool.
        second: (H, W) bool.
        reach: The greatest distance of a pair, pixels.

    Returns:
        (H, W) int64: the flat number of the pixel in ``second``, -1 where there is no edge or no partner.
    """
    height, width = first.shape
    near = neighbours(reach, width)
    margin = near.margin
    padded = [np.pad(np.asarray(drawn, np.bool_), margin) for drawn in (first, second)]
    size = padded[0].size
    one, two = (Side(np.zeros(size, np.bool_), np.full(size, -1), np.zeros(size, np.int64)) for _ in padded)
    two.present[:] = padded[1].ravel()
    scratch = new_scratch(size)
    for pixel in np.flatnonzero(padded[0]):
        one.present[pixel] = True
        enter(pixel, one, two, near, scratch, False)
    mate = one.mate.reshape(padded[0].shape)[margin : margin + height, margin : margin + width].astype(np.int64)
    y, x = np.divmod(mate, width + 2 * margin)
    return np.where(mate >= 0, (y - margin) * width + x - margin, -1)
