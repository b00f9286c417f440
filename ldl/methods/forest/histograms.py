"""Sums of derivatives by bin: of a node's rows, or of those that a node has more than its child (Ke et al. 2017)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.bins import Bins, Share
from ldl.methods.forest.compiled import compiled, inlined, inlined_fast

CACHED = 512
"""Rows whose derivatives stay in a core's cache while they are added to all features."""
TOGETHER = 1 << 16
"""Rows that are summed in float32 before they are added to the rest: in one long sum what a row adds gets lost."""


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
    begin, end = bins.offset[share.first], bins.offset[share.last]
    dense = np.array([f for f in features if share.first <= f < share.last and bins.default[f] < 0], np.int64)
    # Rows list all features that are sparse, whether or not they are among those that are asked for.
    sparse = np.array([f for f in range(share.first, share.last) if bins.default[f] >= 0], np.int64)
    used = np.concatenate((dense, sparse))
    whole, counts = histogram.sums[begin:end], histogram.rows[begin:end]
    part = np.empty_like(whole) if len(rows) > TOGETHER else whole
    for f in used:
        counts[_own(bins, f, begin)] = 0
    for first in range(0, max(len(rows), 1), TOGETHER):
        own, into = rows[first : first + TOGETHER], part if first else whole
        for f in used:
            into[_own(bins, f, begin)] = 0
        if len(dense):
            _add_dense(bins, dense, begin, derivatives, own, into, counts)
        if len(sparse):
            _add_listed(share.start, share.listed, begin, derivatives, own, into, counts)
        if first:
            for f in used:
                whole[_own(bins, f, begin)] += part[_own(bins, f, begin)]
    for f in features:
        if share.first <= f < share.last and bins.default[f] >= 0:
            _fill_default(bins, f, len(rows), sums, histogram)


@inlined
def _own(bins: Bins, f: int, begin: int) -> slice:
    """The bins of a feature, counted from ``begin``."""
    return slice(bins.offset[f] - begin, bins.offset[f + 1] - begin)


@inlined
def _add_dense(
    bins: Bins,
    dense: np.ndarray,
    begin: int,
    derivatives: np.ndarray,
    rows: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
) -> None:
    for first in range(0, len(rows), CACHED):
        own = rows[first : first + CACHED]
        for f in dense:
            _add_codes(bins.codes[f], derivatives, own, sums[_own(bins, f, begin)], counts[_own(bins, f, begin)])


@inlined_fast
def _add_codes(
    codes: np.ndarray, derivatives: np.ndarray, rows: np.ndarray, sums: np.ndarray, counts: np.ndarray
) -> None:
    """Add rows to one feature's bins; a function of plain arrays, of which the compiler makes vector instructions."""
    for i in range(len(rows)):
        # Unsigned: a number that might be negative would cost a branch at each use.
        row = np.uint32(rows[i])
        at = codes[row]
        counts[at] += 1
        for k in range(derivatives.shape[1]):
            sums[at, k] += derivatives[row, k]


@inlined_fast
def _add_listed(
    start: np.ndarray,
    listed: np.ndarray,
    begin: int,
    derivatives: np.ndarray,
    rows: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
) -> None:
    for row in rows:
        for place in range(start[row], start[row + 1]):
            at = listed[place] - begin
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
