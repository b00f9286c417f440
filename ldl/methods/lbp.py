"""Histograms of uniform local binary patterns (Ojala, Pietikäinen & Mäenpää, IEEE TPAMI 2002), and their mirror images.

One bit for each of P neighbours of a pixel on a circle states whether it is at least as bright. Patterns with at most
two changes around the circle are uniform. These P (P - 1) + 2 patterns have a bin each; all others share the last bin.
"""

from __future__ import annotations

import numpy as np

from ldl.errors import LDLError
from ldl.moved import old_names

__getattr__ = old_names(__name__)

MOST_NEIGHBOURS = 62
"""Largest even number of neighbours whose codes fit into 64-bit integers."""


def mirrored_bins(bins: int) -> np.ndarray:
    """Return for every bin the bin of the same patterns in the image mirrored left to right.

    Uniform patterns are ordered by their codes. Bit k is the neighbour at k times 360 / P degrees, counted
    counter-clockwise from the right, as in the published Matlab code.

    Args:
        bins: P (P - 1) + 3 for an even number P of neighbours: 59 for 8, 243 for 16.

    Returns:
        (bins,) int64, its own inverse.

    Raises:
        LDLError: Another number of bins.
    """
    neighbours = next((count for count in range(2, MOST_NEIGHBOURS + 1, 2) if count * (count - 1) + 3 == bins), None)
    if neighbours is None:
        raise LDLError(
            f"{bins} features are no histogram of uniform local binary patterns, which has P (P - 1) + 3 bins for an "
            "even number P of neighbours, such as 59 for 8 and 243 for 16"
        )
    every = (1 << neighbours) - 1
    runs = [
        (((1 << length) - 1) << start | ((1 << length) - 1) >> (neighbours - start)) & every
        for length in range(1, neighbours)
        for start in range(neighbours)
    ]
    codes = sorted([0, *runs, every])
    number_of = {code: number for number, code in enumerate(codes)}
    moved = [(neighbours // 2 - bit) % neighbours for bit in range(neighbours)]
    mirrored = [sum(1 << moved[bit] for bit in range(neighbours) if code >> bit & 1) for code in codes]
    return np.array([*(number_of[code] for code in mirrored), len(codes)])
