"""Binned features as histograms are made of them: bins of all features side by side, and sparse features by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.binning import BINS, bin_features
from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.mapped import scratch

MOST_BINS = BINS - 1
"""Bins of a feature, besides that of missing values."""


class Bins(NamedTuple):
    """N training rows of F features in B bins altogether.

    A feature of which one bin holds at least half of the rows is *sparse*: that bin is its default, whose sums are the
    node's less those of the other bins, so only the other rows are visited.

    Attributes:
        codes: (F, N) uint8, the bin of each value within its feature; missing values have the one after the last.
        offset: (F + 1,) int64; feature f has bins ``offset[f]:offset[f + 1]`` of the histogram.
        filled: (F,) int32, how many of them are of values; where there is one more, it is that of missing values.
        default: (F,) int32, the bin within a sparse feature that is not listed, -1 in others.
        low: (F, 256) float32, the smallest value in each bin.
        high: (F, 256) float32, the largest.
    """

    codes: np.ndarray
    offset: np.ndarray
    filled: np.ndarray
    default: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Share(NamedTuple):
    """The features first..last - 1, of which one thread makes the histograms.

    Attributes:
        first: The first feature.
        last: One past the last.
        start: (N + 1,) int64; row i lists ``listed[start[i]:start[i + 1]]``. (1,) where no feature is sparse.
        listed: Bins of the histogram that a row is in, other than the defaults of sparse features; int32.
        owner: The feature of each that is listed; int32.
    """

    first: int
    last: int
    start: np.ndarray
    listed: np.ndarray
    owner: np.ndarray


def make_bins(features: np.ndarray, bins: int = MOST_BINS, rows: np.ndarray | None = None, threads: int = 1) -> Bins:
    """Quantile bins of features (N, F) float32, finite or NaN; see :func:`.binning.bin_features`."""
    codes, low, high, filled, held = bin_features(features, bins, rows, threads)
    offset = np.concatenate([[0], np.cumsum(np.count_nonzero(held, 1))])
    most = held.argmax(1)
    default = np.where(2 * held.max(1) >= codes.shape[1], most, -1).astype(np.int32)
    return Bins(codes, offset, filled, default, low, high)


def make_shares(bins: Bins, parts: int) -> list[Share]:
    """The features in so many parts, in order, of about equal work."""
    width, rows = bins.codes.shape
    # A sparse feature costs about what its bins do.
    cost = np.where(bins.default >= 0, 0, rows) + 8 * np.diff(bins.offset)
    total = np.concatenate([[0], cost.cumsum()])
    cuts = np.searchsorted(total, np.linspace(0, total[-1], parts + 1)[1:-1]).tolist()
    return [_make_share(bins, first, last) for first, last in zip([0, *cuts], [*cuts, width])]


def _make_share(bins: Bins, first: int, last: int) -> Share:
    if not (bins.default[first:last] >= 0).any():
        return Share(first, last, np.zeros(1, np.int64), *np.empty((2, 0), np.int32))
    start = np.zeros(bins.codes.shape[1] + 1, np.int64)
    _count_listed(bins, first, last, start)
    np.cumsum(start, out=start)
    listed, owner = (scratch((int(start[-1]),), np.int32) for _ in range(2))
    _list(bins, first, last, start[:-1].copy(), listed, owner)
    return Share(first, last, start, listed, owner)


@inlined
def is_listed(bins: Bins, f: int, row: int) -> bool:
    """Whether a row is listed for feature f, which is sparse and in which it is in another than the default bin."""
    return bins.default[f] >= 0 and np.int64(bins.codes[f, row]) != np.int64(bins.default[f])


@compiled
def _count_listed(bins: Bins, first: int, last: int, start: np.ndarray) -> None:
    for f in range(first, last):
        for row in range(bins.codes.shape[1]):
            start[row + 1] += is_listed(bins, f, row)


@compiled
def _list(bins: Bins, first: int, last: int, place: np.ndarray, listed: np.ndarray, owner: np.ndarray) -> None:
    for f in range(first, last):
        for row in range(bins.codes.shape[1]):
            if is_listed(bins, f, row):
                listed[place[row]] = bins.offset[f] + bins.codes[f, row]
                owner[place[row]] = f
                place[row] += 1
