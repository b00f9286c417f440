"""Random cuts of sparse features, by what rows list: what most rows have is what the others leave of the node."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.bins import Bins, Share
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.sides import Sides, draw


@compiled
def places(features: np.ndarray, share: Share) -> np.ndarray:
    """Of each feature of a share its place among those asked for, -1 for the others."""
    place = np.full(share.last - share.first, -1)
    for at, f in enumerate(features):
        place[f - share.first] = at
    return place


@compiled
def draw_listed(
    bins: Bins, share: Share, features: np.ndarray, place: np.ndarray, rows: np.ndarray, draws: np.ndarray,
    number: int, sides: Sides,
) -> None:  # fmt: skip
    """Fill in what is drawn for sparse features, and their missing values."""
    low, others = np.full(len(features), 256), np.zeros(len(features), np.int64)
    for row in rows:
        for listed in range(share.start[row], share.start[row + 1]):
            f = share.owner[listed]
            at = place[f - share.first]
            if at >= 0:
                others[at] += 1
                code = share.listed[listed] - bins.offset[f]
                if code == bins.filled[f]:
                    sides.missing[at] += 1
                else:
                    low[at], sides.high[at] = min(low[at], code), max(sides.high[at], code)
    for at, f in enumerate(features):
        default = np.int64(bins.default[f])
        if default >= 0:
            if default == bins.filled[f]:
                sides.missing[at] = len(rows) - others[at]
            elif others[at] < len(rows):
                low[at], sides.high[at] = min(low[at], default), max(sides.high[at], default)
            sides.drawn[at] = draw(bins, f, low[at], sides.high[at], draws, number)


@compiled
def add_listed(
    bins: Bins, share: Share, features: np.ndarray, place: np.ndarray, derivatives: np.ndarray, rows: np.ndarray,
    sums: np.ndarray, sides: Sides,
) -> None:  # fmt: skip
    """Fill in the sums and the edges of sparse features; ``sums`` (2 W,) are those of the node."""
    width = derivatives.shape[1]
    rest, others = np.zeros((len(features), width)), np.zeros(len(features), np.int64)
    for row in rows:
        for listed in range(share.start[row], share.start[row + 1]):
            f = share.owner[listed]
            at = place[f - share.first]
            if at < 0:
                continue
            code = share.listed[listed] - bins.offset[f]
            others[at] += 1
            for k in range(width):
                rest[at, k] += derivatives[row, k]
            _meet(bins, f, at, code, 1, sides)
            if code <= sides.drawn[at]:
                for k in range(width):
                    sides.left[at, k] += derivatives[row, k]
            elif code == bins.filled[f]:
                for k in range(width):
                    sides.absent[at, k] += derivatives[row, k]
    for at, f in enumerate(features):
        default = np.int64(bins.default[f])
        if default >= 0 and others[at] < len(rows):
            _meet(bins, f, at, default, len(rows) - others[at], sides)
            if default <= sides.drawn[at]:
                sides.left[at] += sums - rest[at]
            elif default == bins.filled[f]:
                sides.absent[at] += sums - rest[at]


@compiled
def _meet(bins: Bins, f: int, at: int, code: int, count: int, sides: Sides) -> None:
    """Count rows of a bin, and move the edges towards it."""
    edges = sides.edges[at]
    if code <= sides.drawn[at]:
        sides.here[at] += count
        edges[0] = max(edges[0], code)
    elif code < bins.filled[f]:
        edges[1] = code if edges[1] < 0 else min(edges[1], code)
