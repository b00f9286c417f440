"""Bins of features: one byte a value, so that a million patches fit in memory.

A feature's bins are those of its map, because all cells of a patch see the same kind of value: 26 tables serve 7228
features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.structured.channels import CHANNELS, POINTS, SIDE, Places
from ldl.methods.forest.compiled import compiled

BINS = 256
_STEPS = 4096


class Bins(NamedTuple):
    """The bins of each map's values, and where to begin the search for the bin of a value.

    Attributes:
        edges: (26, 255) float32, rising. Bin k holds the values above edge k - 1 up to edge k.
        top: (26, 256) float32, the largest value of each bin; of the last, one just above its edge.
        low: (26,) float32, where even steps along the values begin.
        scale: (26,) float32, steps by unit of value.
        guess: (26, 4096) uint8, a bin no higher than those of all values in a step.
    """

    edges: np.ndarray
    top: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    guess: np.ndarray


def make_bins(maps: list[np.ndarray], seed: int, draws: int = 200_000) -> Bins:
    """Bins that are about equally full over patches at random places of the images, whose feature maps are given.

    Each table is made from about so many ``draws``, over all images.
    """
    random = np.random.default_rng(seed)
    drawn = []
    count = -(-draws // len(maps))
    for image in maps:
        height, width = image.shape[1:]
        row, column = random.integers(height - SIDE + 1, size=count), random.integers(width - SIDE + 1, size=count)
        one, two = (random.choice(POINTS, (2, count)) for _ in range(2))
        similar = image[CHANNELS:]
        differences = similar[:, row + one[0], column + one[1]] - similar[:, row + two[0], column + two[1]]
        drawn.append(np.concatenate([image[:CHANNELS, row, column], differences]))
    shares = np.arange(1, BINS) / BINS
    edges = np.stack([np.quantile(values, shares) for values in np.concatenate(drawn, axis=1)]).astype(np.float32)
    low, width = edges[:, 0], np.maximum(edges[:, -1] - edges[:, 0], np.float32(1e-6))
    # One step back, because a value close to the border of two steps may be rounded into the next.
    starts = low[:, None] + (np.arange(_STEPS) - 1) * (width / _STEPS)[:, None]
    guess = np.stack([np.searchsorted(table, start) for table, start in zip(edges, starts)]).astype(np.uint8)
    guess[:, 0] = 0
    top = np.concatenate([edges, np.nextafter(edges[:, -1:], np.float32(np.inf))], axis=1)
    return Bins(edges, top, low, (_STEPS / width).astype(np.float32), guess)


@compiled
def bin_patches(maps: np.ndarray, places: Places, bins: Bins, cells: np.ndarray, codes: np.ndarray) -> None:
    """Fill in ``codes`` (F, n) uint8: F features of the n patches of maps (26, h, w) that start at ``cells`` (n, 2).

    A code is how many edges lie below the value: value <= edges[k] is code <= k.
    """
    for f in range(len(codes)):
        m = places.map[f]
        values, edges, guess, low, scale = maps[m], bins.edges[m], bins.guess[m], bins.low[m], bins.scale[m]
        y, x, other_y, other_x = places.first[f, 0], places.first[f, 1], places.second[f, 0], places.second[f, 1]
        for i in range(len(cells)):
            row, column = cells[i, 0], cells[i, 1]
            value = values[row + y, column + x]
            if other_y >= 0:
                value -= values[row + other_y, column + other_x]
            step = (value - low) * scale
            code = np.int64(guess[int(min(max(step, np.float32(0)), np.float32(_STEPS - 1)))])
            while code < BINS - 1 and edges[code] < value:
                code += 1
            codes[f, i] = code
