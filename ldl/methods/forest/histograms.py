"""Sums of derivatives by bin: of a node's rows, or of those that a node has more than its child (Ke et al. 2017)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.bins import Bins, Share
from ldl.methods.forest.compiled import compiled, inlined, inlined_fast


class Histogram(NamedTuple):
    """What a node's rows sum up to in each bin of all features.

    Attributes:
        sums: (B, 2 W) float32, gradients of W outputs, then their second derivatives.
        rows: (B,) int32, how many rows they are.
    """

    sums: np.ndarray
    rows: np.ndarray


@compiled
def total(derivatives: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sum of derivatives (N, 2 W) over some rows, (2 W,) float64."""
    width = derivatives.shape[1]
    sums = np.zeros(width)
    for row in rows:
        for k in range(width):
            sums[k] += np.float64(derivatives[row, k])
    return sums


@compiled
def accumulate(
    bins: Bins,
    share: Share,
    features: np.ndarray,
    derivatives: np.ndarray,
    rows: np.ndarray,
    sums: np.ndarray,
    histogram: Histogram,
) -> None:
    """Fill in a node's histogram for those of the ``features`` (rising) that are in a share.

    ``rows`` are the node's, ``sums`` the :func:`total` of their ``derivatives``.
    """
    for f in features:
        if share.first <= f < share.last and bins.default[f] < 0:
            own = slice(bins.offset[f], bins.offset[f + 1])
            _add_codes(bins.codes[f], derivatives, rows, histogram.sums[own], histogram.rows[own])
    if (bins.default[share.first : share.last] >= 0).any():
        for f in range(share.first, share.last):
            if bins.default[f] >= 0:
                histogram.sums[bins.offset[f] : bins.offset[f + 1]] = 0
                histogram.rows[bins.offset[f] : bins.offset[f + 1]] = 0
        _add_listed(share.start, share.listed, derivatives, rows, histogram.sums, histogram.rows)
    for f in features:
        if share.first <= f < share.last and bins.default[f] >= 0:
            _fill_default(bins, f, len(rows), sums, histogram)


@inlined_fast
def _add_codes(
    codes: np.ndarray, derivatives: np.ndarray, rows: np.ndarray, sums: np.ndarray, counts: np.ndarray
) -> None:
    """Make one feature's histogram; a function of plain arrays, of which the compiler makes vector instructions."""
    sums[:] = 0
    counts[:] = 0
    for row in rows:
        at = codes[row]
        counts[at] += 1
        for k in range(derivatives.shape[1]):
            sums[at, k] += derivatives[row, k]


@inlined_fast
def _add_listed(
    start: np.ndarray,
    listed: np.ndarray,
    derivatives: np.ndarray,
    rows: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
) -> None:
    for row in rows:
        for place in range(start[row], start[row + 1]):
            at = listed[place]
            counts[at] += 1
            for k in range(derivatives.shape[1]):
                sums[at, k] += derivatives[row, k]


@inlined
def _fill_default(bins: Bins, f: int, count: int, sums: np.ndarray, histogram: Histogram) -> None:
    rest = sums.copy()
    default = bins.offset[f] + bins.default[f]
    for at in range(bins.offset[f], bins.offset[f + 1]):
        if at != default and histogram.rows[at]:
            count -= histogram.rows[at]
            for k in range(len(rest)):
                rest[k] -= np.float64(histogram.sums[at, k])
    histogram.rows[default] = count
    for k in range(len(rest)):
        histogram.sums[default, k] = rest[k]


@compiled
def subtract(bins: Bins, share: Share, features: np.ndarray, histogram: Histogram, part: Histogram) -> None:
    """Take a child's histogram from its parent's, which becomes that of the other child."""
    for f in features:
        if share.first <= f < share.last:
            for at in range(bins.offset[f], bins.offset[f + 1]):
                if part.rows[at]:
                    histogram.rows[at] -= part.rows[at]
                    for k in range(part.sums.shape[1]):
                        histogram.sums[at, k] -= part.sums[at, k]
