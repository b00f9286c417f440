"""Quantile bins of features, a few columns at a time: the table may lie in a map of a file larger than memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from ldl.errors import LDLError
from ldl.methods.forest.compiled import compiled
from ldl.methods.mapped import blocks, scratch

BINS = 256
COLUMNS = 1 << 30
"""Bytes of columns that are held at a time, with those that are being sorted; one a thread at least."""
MOST = 2**31 - 1
"""Trees number rows by 32 bits."""


class Binned(NamedTuple):
    """The bins of n rows of F features.

    Attributes:
        codes: (F, n) uint8, the bin of each value; missing values have the one after the last.
        low: (F, 256) float32, the smallest value in each bin.
        high: (F, 256) float32, the largest.
        filled: (F,) int32, how many bins have values.
        held: (F, 256) int64, how many rows are in each bin.
    """

    codes: np.ndarray
    low: np.ndarray
    high: np.ndarray
    filled: np.ndarray
    held: np.ndarray


def bin_features(features: np.ndarray, bins: int, rows: np.ndarray | None = None, threads: int = 1) -> Binned:
    """Sort features into bins that hold about equally many rows.

    Args:
        features: (N, F) float32, finite or NaN.
        bins: Of a feature, at most 256, or 255 where there is NaN. Where it has no more values, each has a bin of its
            own.
        rows: (n,) those that count, rising; None for all.
        threads: How many columns are sorted at a time.
    """
    count, width = len(features) if rows is None else len(rows), features.shape[1]
    check_count(count)
    low, high = np.zeros((2, width, BINS), np.float32)
    filled, held = np.zeros(width, np.int32), np.zeros((width, BINS), np.int64)
    binned = Binned(scratch((width, count), np.uint8), low, high, filled, held)
    at_once = max(1, COLUMNS // (4 * max(1, count)) - threads)
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, width, at_once):
            columns = _columns(features, first, min(first + at_once, width), rows)
            list(pool.map(partial(_bin, bins, binned), range(first, width), columns))
            del columns  # before those that follow are made
    return binned


def check_count(count: int) -> None:
    """Raise LDLError for more rows, or values in the order of which they are listed, than trees can number."""
    if count > MOST:
        raise LDLError(
            f"trees number rows, and values in order for an exact search, by 32 bits, and {count:,} are more than "
            f"{MOST:,}; take fewer rows, or the search 'histogram'"
        )


def _columns(features: np.ndarray, first: int, last: int, rows: np.ndarray | None) -> np.ndarray:
    """Some columns of the features, each for itself, (last - first, n)."""
    columns = np.empty((last - first, len(features) if rows is None else len(rows)), np.float32)
    for start, block in blocks(features):
        if rows is None:
            columns[:, start : start + len(block)] = block[:, first:last].T
        else:
            begin, end = np.searchsorted(rows, [start, start + len(block)])
            columns[:, begin:end] = block[rows[begin:end] - start, first:last].T
    return columns


def _bin(bins: int, binned: Binned, f: int, column: np.ndarray) -> None:
    ordered = np.sort(column)  # NaN comes last
    used = binned.filled[f] = _cut(ordered, bins, binned.low[f], binned.high[f])
    _code(column, binned.high[f], used, binned.codes[f], binned.held[f])


@compiled
def _cut(ordered: np.ndarray, bins: int, low: np.ndarray, high: np.ndarray) -> int:
    """Fill in the ends of the bins of values that rise; how many bins there are."""
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
        # A bin is full when it holds its share of the rows that are left.
        if i > 0 and value != ordered[i - 1] and (distinct <= bins or filled * (bins - bin_) >= left):
            left -= filled
            bin_, filled = bin_ + 1, 0
            low[bin_] = value
        high[bin_] = value
        filled += 1
    return bin_ + 1


@compiled
def _code(column: np.ndarray, high: np.ndarray, used: int, codes: np.ndarray, held: np.ndarray) -> None:
    """Fill in the bins of values, and count them; NaN is in bin ``used``."""
    ends = np.full(BINS, np.inf, np.float32)
    ends[:used] = high[:used]
    for i in range(len(column)):
        value = column[i]
        # How many bins end below the value, found without branches.
        code = 0
        step = BINS // 2
        while step:
            code += step * (ends[code + step - 1] < value)
            step //= 2
        code = used if value != value else code
        codes[i] = code
        held[code] += 1
