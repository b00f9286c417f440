"""Training features in the layouts that growers read: quantile bins, ordered columns, and bins of sparse features.

Features are read a few columns at a time, as their table may be a memory-mapped file larger than memory.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

import numpy as np

from ldl.errors import LDLError
from ldl.methods.numba_kernels import compiled, inlined
from ldl.methods.training_rows import blocks, scratch

BINS = 256
MOST_BINS = BINS - 1
"""Bins of a feature, besides the one for missing values."""
COLUMN_BYTES = 1 << 30
"""Bytes of columns that are held at a time, including those that are being sorted; at least one per thread."""
MOST_ROWS = 2**31 - 1
"""Trees number rows by 32 bits."""
ColumnLayout = Literal["ordered", "binned", "plain"]


class FeatureBins(NamedTuple):
    """N training rows of F features in quantile bins, B in total.

    A feature is *sparse* if one bin holds at least half of the rows. That bin is its default. Its sums are those of the
    node less those of the other bins, so only the other rows are visited.

    Attributes:
        codes: (F, N) uint8, the bin of each value within its feature; missing values have the one after the last.
        offset: (F + 1,) int64; feature f has bins ``offset[f]:offset[f + 1]`` of the histogram.
        filled: (F,) int32, the number of bins with values; one more bin, if there is one, holds missing values.
        default: (F,) int32, the default bin within a sparse feature, -1 for other features.
        low: (F, 256) float32, the smallest value in each bin.
        high: (F, 256) float32, the largest value in each bin.
    """

    codes: np.ndarray
    offset: np.ndarray
    filled: np.ndarray
    default: np.ndarray
    low: np.ndarray
    high: np.ndarray


def make_bins(
    features: np.ndarray, bins: int = MOST_BINS, rows: np.ndarray | None = None, threads: int = 1
) -> FeatureBins:
    """Sort features into bins of about equally many rows.

    Args:
        features: (N, F) float32, finite or NaN.
        bins: Bins of a feature, at most 256, or 255 with NaN. A feature with at most this many values has one bin per
            value.
        rows: (n,) numbers of the rows to use, rising; None for all.
        threads: Columns that are sorted at a time.
    """
    count, width = len(features) if rows is None else len(rows), features.shape[1]
    check_count(count)
    codes, (low, high) = scratch((width, count), np.uint8), np.zeros((2, width, BINS), np.float32)
    filled, held = np.zeros(width, np.int32), np.zeros((width, BINS), np.int64)

    def sort(f: int, column: np.ndarray) -> None:
        ordered = np.sort(column)  # NaN comes last
        used = filled[f] = _cut(ordered, bins, low[f], high[f])
        _code(column, high[f], used, codes[f], held[f])

    at_once = max(1, COLUMN_BYTES // (4 * max(1, count)) - threads)
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, width, at_once):
            columns = _columns(features, first, min(first + at_once, width), rows)
            list(pool.map(sort, range(first, width), columns))
            del columns  # before the next ones are made
    offset = np.concatenate([[0], np.cumsum(np.count_nonzero(held, 1))])
    default = np.where(2 * held.max(1) >= count, held.argmax(1), -1).astype(np.int32)
    return FeatureBins(codes, offset, filled, default, low, high)


def check_count(count: int) -> None:
    """Raise LDLError for more rows, or listed values, than trees can number."""
    if count > MOST_ROWS:
        raise LDLError(
            f"trees number rows, and values in order for an exact search, by 32 bits, and {count:,} are more than "
            f"{MOST_ROWS:,}; take fewer rows, or the search 'histogram'"
        )


def _columns(features: np.ndarray, first: int, last: int, rows: np.ndarray | None) -> np.ndarray:
    """Return some columns of the features as contiguous rows, (last - first, n)."""
    columns = np.empty((last - first, len(features) if rows is None else len(rows)), np.float32)
    for start, block in blocks(features):
        if rows is None:
            columns[:, start : start + len(block)] = block[:, first:last].T
        else:
            begin, end = np.searchsorted(rows, [start, start + len(block)])
            columns[:, begin:end] = block[rows[begin:end] - start, first:last].T
    return columns


@compiled
def _cut(ordered: np.ndarray, bins: int, low: np.ndarray, high: np.ndarray) -> int:
    """Fill in the ends of the bins of rising values, and return the number of bins."""
    count = len(ordered)
    while count and np.isnan(ordered[count - 1]):
        count -= 1
    if not count:
        return 0
    distinct = 1
    for i in range(1, count):
        distinct += ordered[i] != ordered[i - 1]
    bin_, filled, left = 0, 0, count
    low[0] = ordered[0]
    for i in range(count):
        value = ordered[i]
        # A bin is full when it holds its share of the remaining rows.
        if i > 0 and value != ordered[i - 1] and (distinct <= bins or filled * (bins - bin_) >= left):
            left -= filled
            bin_, filled = bin_ + 1, 0
            low[bin_] = value
        high[bin_] = value
        filled += 1
    return bin_ + 1


@compiled
def _code(column: np.ndarray, high: np.ndarray, used: int, codes: np.ndarray, held: np.ndarray) -> None:
    """Fill in the bin of each value, and count the rows of each bin; NaN is in bin ``used``."""
    ends = np.full(BINS, np.inf, np.float32)
    ends[:used] = high[:used]
    for i in range(len(column)):
        value = column[i]
        # The number of bins that end below the value, found without branches.
        code = 0
        step = BINS // 2
        while step:
            code += step * (ends[code + step - 1] < value)
            step //= 2
        code = used if value != value else code
        codes[i] = code
        held[code] += 1


class ForestColumns(NamedTuple):
    """Training features of a forest; the arrays that its search does not use are empty.

    A feature is *sparse* if one value holds at least half of the rows. That value is its default, and only the other
    rows are listed, so growing costs as much as the listed rows.

    Attributes:
        start: (F + 1,) int64; feature f lists ``rows[start[f]:start[f + 1]]``.
        rows: Listed rows of each feature by rising value, int32.
        listed: Their values, float32.
        default: (F,) float32, NaN for a feature without a default.
        values: (F, N) float32, all values.
        codes: (F, N) uint8, the bin of each value.
        low: (F, 256) float32, the smallest value in each bin.
        high: (F, 256) float32, the largest value in each bin.
    """

    start: np.ndarray
    rows: np.ndarray
    listed: np.ndarray
    default: np.ndarray
    values: np.ndarray
    codes: np.ndarray
    low: np.ndarray
    high: np.ndarray


def make_columns(features: np.ndarray, kind: ColumnLayout, bins: int = BINS, threads: int = 1) -> ForestColumns:
    """Lay out features (N, F), finite float32: rows in order, quantile bins (by ``threads``), or plain values."""
    width = features.shape[1]
    start, default = np.zeros(width + 1, np.int64), np.full(width, np.nan, np.float32)
    rows, listed = [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    if kind == "binned":
        codes, _, _, _, low, high = make_bins(features, bins, threads=threads)
    else:
        codes, low, high = np.empty((width, 0), np.uint8), *np.zeros((2, width, 0), np.float32)
    for f in range(width if kind == "ordered" else 0):
        column = np.ascontiguousarray(features[:, f])
        default[f] = _majority(column)
        # NaN, which marks no default, is unequal to every value.
        others = np.flatnonzero(column != default[f]).astype(np.int32)
        others = others[np.argsort(column[others])]
        start[f + 1] = start[f] + len(others)
        check_count(int(start[f + 1]))
        rows.append(others)
        listed.append(column[others])
    values = np.ascontiguousarray(features.T) if kind == "plain" else np.empty((width, 0), np.float32)
    return ForestColumns(start, np.concatenate(rows), np.concatenate(listed), default, values, codes, low, high)


@compiled
def _majority(column: np.ndarray) -> float:
    """Return the value of at least half of the rows, or NaN."""
    # It survives when unequal values cancel in pairs; if it has exactly half, the last row decides.
    candidate, votes = column[-1], 0
    for value in column:
        if votes == 0:
            candidate = value
        votes += 1 if value == candidate else -1
    for guess in (candidate, column[-1]):
        held = 0
        for value in column:
            held += value == guess
        if 2 * held >= len(column):
            return guess
    return np.float32(np.nan)


class Share(NamedTuple):
    """The features first..last - 1, whose histograms one thread makes.

    Attributes:
        first: The first feature.
        last: One past the last.
        start: (N + 1,) int64; row i lists ``listed[start[i]:start[i + 1]]``. (1,) if no feature is sparse.
        listed: Bins of the histogram, other than defaults, of a row's sparse features, int32.
        owner: The feature of each listed bin, int32.
    """

    first: int
    last: int
    start: np.ndarray
    listed: np.ndarray
    owner: np.ndarray


class Shares(NamedTuple):
    """The shares of T threads, in arrays that compiled code can loop over.

    Attributes:
        cuts: (T + 1,) int64; share t has the features ``cuts[t]..cuts[t + 1] - 1``.
        start: (T, N + 1) int64, see :class:`Share`; (T, 1) if no feature is sparse.
        listed: Of all shares, int32.
        owner: Of all shares, int32.
    """

    cuts: np.ndarray
    start: np.ndarray
    listed: np.ndarray
    owner: np.ndarray


@inlined
def share_of(shares: Shares, number: int) -> Share:
    """Return one of the shares."""
    start = shares.start[number]
    return Share(shares.cuts[number], shares.cuts[number + 1], start, shares.listed, shares.owner)


@inlined
def lists_any(share: Share) -> bool:
    """Return whether any row lists a bin."""
    return share.start[-1] > share.start[0]


def make_shares(bins: FeatureBins, count: int, first: int = 0, last: int | None = None) -> Shares:
    """Divide the features, in order, into ``count`` parts of about equal work, and return the parts first..last - 1."""
    width, rows = bins.codes.shape
    # A sparse feature costs about as much as its bins.
    cost = np.where(bins.default >= 0, 0, rows) + 8 * np.diff(bins.offset)
    total = np.concatenate([[0], cost.cumsum()])
    between = np.searchsorted(total, np.linspace(0, total[-1], count + 1)[1:-1])
    cuts = np.concatenate([[0], between, [width]])[first : (count if last is None else last) + 1]
    if not (bins.default[cuts[0] : cuts[-1]] >= 0).any():
        return Shares(cuts, np.zeros((len(cuts) - 1, 1), np.int64), *np.empty((2, 0), np.int32))
    start = np.zeros((len(cuts) - 1, rows + 1), np.int64)
    for share, listed_before in enumerate(start):
        _count_listed(bins, cuts[share], cuts[share + 1], listed_before)
    # The entries of a share follow those of the share before it.
    np.cumsum(start.reshape(-1), out=start.reshape(-1))
    listed, owner = (scratch((int(start[-1, -1]),), np.int32) for _ in range(2))
    for share, positions in enumerate(start):
        _list(bins, cuts[share], cuts[share + 1], positions[:-1].copy(), listed, owner)
    return Shares(cuts, start, listed, owner)


@inlined
def _is_listed(bins: FeatureBins, f: int, row: int) -> bool:
    """Return whether feature f is sparse and the row is in another bin than the default."""
    return bins.default[f] >= 0 and np.int64(bins.codes[f, row]) != np.int64(bins.default[f])


@compiled
def _count_listed(bins: FeatureBins, first: int, last: int, start: np.ndarray) -> None:
    for f in range(first, last):
        for row in range(bins.codes.shape[1]):
            start[row + 1] += _is_listed(bins, f, row)


@compiled
def _list(
    bins: FeatureBins, first: int, last: int, position: np.ndarray, listed: np.ndarray, owner: np.ndarray
) -> None:
    for f in range(first, last):
        for row in range(bins.codes.shape[1]):
            if _is_listed(bins, f, row):
                listed[position[row]] = bins.offset[f] + bins.codes[f, row]
                owner[position[row]] = f
                position[row] += 1
