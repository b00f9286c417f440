"""What a random cut of each feature parts a node's rows into."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.bins import Bins
from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.forest.draws import next_share, substream


class Sides(NamedTuple):
    """Of K features, each with one cut.

    Attributes:
        drawn: (K,) int64, the last bin on the left, -1 where no row has a value.
        high: (K,) int64, the highest bin that a row fills, -1 for none.
        missing: (K,) int64, rows without a value.
        left: (K, 2 W) float64, derivatives of the rows on the left.
        absent: (K, 2 W) float64, of those without a value.
        here: (K,) int64, rows on the left.
        edges: (K, 2) int64, the bins next to the cut that rows fill, the upper one -1 where no row is above it.
    """

    drawn: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    left: np.ndarray
    absent: np.ndarray
    here: np.ndarray
    edges: np.ndarray


@compiled
def make_sides(count: int, width: int) -> Sides:
    """Those of ``count`` features and ``width`` derivatives, before any row is seen."""
    none = np.full(count, -1)
    nothing, zeros = np.zeros((count, width)), np.zeros(count, np.int64)
    return Sides(none, none.copy(), zeros, nothing, nothing.copy(), zeros.copy(), np.full((count, 2), -1))


@inlined
def draw(bins: Bins, f: int, low: int, high: int, draws: np.ndarray, number: int) -> int:
    """The last bin on the left, from ``low`` to the one before ``high``, all as likely; -1 where there is no bin."""
    state = np.empty(1, np.uint64)
    state[0] = substream(draws, number * len(bins.filled) + f)
    return low + int(next_share(state) * (high - low)) if high >= 0 else -1
