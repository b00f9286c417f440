"""Histograms of uniform local binary patterns (Ojala, Pietikäinen & Mäenpää, IEEE TPAMI 2002), and their mirror images.

P neighbours of a pixel, on a circle, say by a bit each whether they are as bright. Patterns of at most two changes
around the circle are uniform: P (P - 1) + 2 of them have a bin of their own, all others share the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldl.errors import LDLError

MOST = 62
"""Neighbours whose codes are whole numbers of 64 bits."""


def mirrored_bins(bins: int) -> np.ndarray:
    """For every bin, the one that counts the same patterns where the picture is mirrored left to right.

    Args:
        bins: P (P - 1) + 3 for an even number P of neighbours: 59 for 8, 243 for 16.

    Returns:
        (bins,) int64, its own inverse.

    Raises:
        LDLError: another number of bins.
    """
    neighbours = neighbours_of(bins)
    return moved_bins([(neighbours // 2 - bit) % neighbours for bit in range(neighbours)])


def neighbours_of(bins: int) -> int:
    """P, of so many bins. Raises LDLError where there is no even P that has them."""
    for neighbours in range(2, MOST + 1, 2):
        if neighbours * (neighbours - 1) + 3 == bins:
            return neighbours
    raise LDLError(
        f"{bins} features are no histogram of uniform local binary patterns, which has P (P - 1) + 3 bins for an "
        "even number P of neighbours, such as 59 for 8 and 243 for 16"
    )


def moved_bins(moved: Sequence[int]) -> np.ndarray:
    """For every bin, the one that counts the same patterns where neighbour k has become neighbour ``moved[k]``.

    Uniform patterns stand in the order of their codes, in which bit k is the neighbour at k times 360 / P degrees,
    counted from the right against the clock, as in the published Matlab code.
    """
    neighbours = len(moved)
    every = (1 << neighbours) - 1
    runs = [
        (((1 << length) - 1) << start | ((1 << length) - 1) >> (neighbours - start)) & every
        for length in range(1, neighbours)
        for start in range(neighbours)
    ]
    codes = sorted([0, *runs, every])
    places = {code: place for place, code in enumerate(codes)}
    become = [sum(1 << moved[bit] for bit in range(neighbours) if code >> bit & 1) for code in codes]
    return np.array([*(places[code] for code in become), len(codes)])
