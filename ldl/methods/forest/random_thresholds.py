"""The best of one random threshold per feature in a node of a boosted tree (extra-trees), without histograms.

A node of few rows and many labels has fewer numbers than its histogram would have. The bins lie row by row, so that
vector instructions compare and add many features of a row at a time. Each sum is still made row after row.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np

from ldl.methods.forest.binning import FeatureBins, Share, Shares, lists_any, share_of
from ldl.methods.forest.histograms import LEAST_GAIN, Newton, score_of, sides_score, write_split
from ldl.methods.numba_kernels import compiled, inlined, next_share, substream
from ldl.methods.training_rows import scratch

LANES = 16
"""Features that are read together; the columns of a share are a multiple of it."""
BLOCK_ROWS = 1024
"""Rows whose bins stay in the cache while they are copied."""


class RowCodes(NamedTuple):
    """Bins of the features that a tree may split by and that are not sparse, row by row, in P columns.

    Attributes:
        codes: (N, P) uint8.
        start: (T + 1,) int64; the features of share t have the columns ``start[t]:start[t + 1]``.
        missing: (T,) int64; all features of a share with missing values are in this many of its first columns.
        column: (F',) int64, the column of each feature that the tree may split by, -1 for a sparse one.
        filled: (P,) uint8, the bin of missing values in each column.
    """

    codes: np.ndarray
    start: np.ndarray
    missing: np.ndarray
    column: np.ndarray
    filled: np.ndarray


class RowCoder:
    """Makes :class:`RowCodes` in the same memory, and keeps those of the last features; threads may share it."""

    def __init__(self, bins: FeatureBins, shares: Shares) -> None:
        self.bins, self.shares, self.lock = bins, shares, Lock()
        self.memory = np.empty(0, np.uint8)
        self.features: np.ndarray | None = None
        self.latest = RowCodes(self.memory.reshape(0, 0), *np.zeros((3, 0), np.int64), self.memory)

    def code(self, features: np.ndarray) -> RowCodes:
        """Return the row codes of features, rising, int64. The memory of other features is overwritten."""
        with self.lock:
            if self.features is None or not np.array_equal(features, self.features):
                self.latest, self.features = self._make(features), features.copy()
            return self.latest

    def _make(self, features: np.ndarray) -> RowCodes:
        bins, cuts, rows = self.bins, self.shares.cuts, self.bins.codes.shape[1]
        start, missing = np.zeros(len(cuts), np.int64), np.zeros(len(cuts) - 1, np.int64)
        column, order = np.full(len(features), -1), []
        for share in range(len(cuts) - 1):
            inside = np.flatnonzero((features >= cuts[share]) & (features < cuts[share + 1]))
            dense = inside[bins.default[features[inside]] < 0]
            coded = features[dense]
            has_missing = bins.offset[coded + 1] - bins.offset[coded] > bins.filled[coded]
            dense = dense[np.argsort(~has_missing, kind="stable")]
            column[dense] = start[share] + np.arange(len(dense))
            missing[share] = _whole_lanes(int(has_missing.sum()))
            start[share + 1] = start[share] + _whole_lanes(len(dense))
            order += [*features[dense].tolist(), *[-1] * (_whole_lanes(len(dense)) - len(dense))]
        size = rows * len(order)
        if len(self.memory) < size:
            self.memory = scratch((size,), np.uint8)
        codes, by_column = self.memory[:size].reshape(rows, len(order)), np.array(order, np.int64)
        _copy_by_row(bins.codes, by_column, codes)
        # No row has a missing value in a column without a feature.
        filled = np.where(by_column < 0, 255, bins.filled[by_column]).astype(np.uint8)
        return RowCodes(codes, start, missing, column, filled)


def _whole_lanes(count: int) -> int:
    return -(-count // LANES) * LANES


@compiled
def _copy_by_row(codes: np.ndarray, features: np.ndarray, out: np.ndarray) -> None:
    """Copy the ``codes`` (F, N) of features into the columns of ``out`` (N, P), with 0 for feature -1."""
    for first in range(0, len(out), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(out))
        for column, f in enumerate(features):
            for row in range(first, last):
                out[row, column] = codes[f, row] if f >= 0 else 0


class _Sides(NamedTuple):
    """Both sides of one threshold for each of K features.

    Attributes:
        drawn: (K,) int64, the last bin on the left, -1 if no row has a value.
        high: (K,) int64, the highest bin with a row, -1 for none; the threshold splits the values if it is above
            ``drawn``.
        missing: (K,) int64, rows without a value.
        left: (K, 2 W) float64, sums of the derivatives of the rows on the left.
        absent: (K, 2 W) float64, sums of the derivatives of the rows without a value.
        here: (K,) int64, rows on the left.
    """

    drawn: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    left: np.ndarray
    absent: np.ndarray
    here: np.ndarray


@compiled
def best_random_split(
    bins: FeatureBins, shares: Shares, thread: int, codes: RowCodes, features: np.ndarray, derivatives: np.ndarray,
    rows: np.ndarray, sums: np.ndarray, rules: Newton, draws: np.ndarray, number: int, split: np.ndarray,
) -> None:  # fmt: skip
    """Write the best :class:`.histograms.BinSplit` of a node within a share to ``split``; of equal ones the first.

    A feature is split after one of the bins from the lowest to the one before the highest with a row of the node, all
    equally likely, and, if values are missing, between missing and other values. If none is missing, missing values go
    to the side with more rows, or left if both are equal.

    Args:
        bins: The training rows.
        shares: The features of each thread.
        thread: The share to search.
        codes: The bins of ``features``, row by row.
        features: Features that the tree may split by, rising.
        derivatives: (N, 2 W) float32, of all rows.
        rows: (n,) int32, the rows of the node.
        sums: (2 W,) float64, sums of the derivatives of the node.
        rules: Hyperparameters.
        draws: (1,) uint64, the initial state of the tree's random numbers.
        number: Number of the node; a draw depends only on it, on the feature and on ``draws``.
        split: (5,) float64, is filled with the split.
    """
    base, best = score_of(sums, rules.l2), LEAST_GAIN
    split[0] = 0.0
    share = share_of(shares, thread)
    first, last = np.searchsorted(features, share.first), np.searchsorted(features, share.last)
    tried = features[first:last]
    sides = _make_sides(len(tried), len(sums))
    _fill_dense(bins, codes, thread, tried, codes.column[first:last], derivatives, rows, draws, number, sides)
    if lists_any(share):
        positions = _places(tried, share.first, share.last)
        _draw_listed(bins, share, tried, positions, rows, draws, number, sides)
        _add_listed(bins, share, tried, positions, derivatives, rows, sums, sides)
    left, absent, here, missing = sides.left, sides.absent, sides.here, sides.missing
    count = len(rows)
    for at, f in enumerate(tried):
        below = sides.drawn[at]
        if below < sides.high[at]:
            if here[at] >= rules.min_leaf and count - here[at] >= rules.min_leaf:
                gain = sides_score(left[at], sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_split(split, gain, f, below, below + 1, missing[at] == 0 and 2 * here[at] >= count)
            both = here[at] + missing[at]
            if missing[at] and both >= rules.min_leaf and count - both >= rules.min_leaf:
                gain = sides_score(left[at] + absent[at], sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_split(split, gain, f, below, below + 1, True)
        if missing[at] >= rules.min_leaf and count - missing[at] >= rules.min_leaf:
            gain = sides_score(absent[at], sums, rules.l2, rules.min_hessian) - base
            if gain > best:
                best = gain
                write_split(split, gain, f, sides.high[at], -1, False)
    if split[0] > 0 and split[3] >= 0:
        f = np.int64(split[1])
        split[2], split[3] = _find_edges(bins.codes[f], bins.filled[f], rows, np.int64(split[2]))


@compiled
def _find_edges(codes: np.ndarray, filled: int, rows: np.ndarray, drawn: int) -> tuple[int, int]:
    """Return the bins with rows next to a threshold that lies after the bin ``drawn``."""
    below, above = np.int64(0), np.int64(filled)
    for row in rows:
        code = np.int64(codes[row])
        below = max(below, code if code <= drawn else 0)
        above = min(above, code if code > drawn else filled)
    return below, above


@compiled
def _make_sides(count: int, width: int) -> _Sides:
    """Return the sides of ``count`` features and ``width`` derivatives before any row is added."""
    none = np.full(count, -1)
    nothing, zeros = np.zeros((count, width)), np.zeros(count, np.int64)
    return _Sides(none, none.copy(), zeros, nothing, nothing.copy(), zeros.copy())


@inlined
def _draw(bins: FeatureBins, f: int, low: int, high: int, draws: np.ndarray, number: int, state: np.ndarray) -> int:
    """Draw the last bin on the left, from ``low`` to the one before ``high``; -1 if there is no bin.

    ``state``, (1,) uint64, is scratch memory.
    """
    state[0] = substream(draws, number * len(bins.filled) + f)
    return low + int(next_share(state) * (high - low)) if high >= 0 else -1


@compiled
def _fill_dense(
    bins: FeatureBins, codes: RowCodes, thread: int, features: np.ndarray, column: np.ndarray, derivatives: np.ndarray,
    rows: np.ndarray, draws: np.ndarray, number: int, sides: _Sides,
) -> None:  # fmt: skip
    """Draw the thresholds of features that are not sparse, and add up both sides."""
    begin, end = codes.start[thread], codes.start[thread + 1]
    width, outputs = end - begin, derivatives.shape[1]
    filled = codes.filled[begin:end]
    low, high = np.full(width, 255, np.uint8), np.zeros(width, np.uint8)
    _find_ranges(codes.codes, begin, filled, rows, low, high)
    # The first bin on the right, 0 if the threshold splits nothing.
    bound, state = np.zeros(width, np.uint8), np.empty(1, np.uint64)
    for at, f in enumerate(features):
        c = column[at] - begin
        if column[at] >= 0 and low[c] < filled[c]:
            drawn = _draw(bins, f, np.int64(low[c]), np.int64(high[c]), draws, number, state)
            sides.drawn[at], sides.high[at] = drawn, high[c]
            bound[c] = drawn + 1 if drawn < high[c] else 0
    left = np.zeros((outputs + 1, width))
    _add_rows(codes.codes, begin, bound, False, derivatives, rows, left)
    absent = np.zeros((outputs + 1, codes.missing[thread]))
    if absent.shape[1]:
        _add_rows(codes.codes, begin, filled, True, derivatives, rows, absent)
    for at in range(len(features)):
        c = column[at] - begin
        if column[at] >= 0:
            sides.here[at] = left[outputs, c]
            for k in range(outputs):
                sides.left[at, k] = left[k, c]
            if c < absent.shape[1]:
                sides.missing[at] = absent[outputs, c]
                for k in range(outputs):
                    sides.absent[at, k] = absent[k, c]


@inlined
def _find_ranges(
    codes: np.ndarray, begin: int, filled: np.ndarray, rows: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Lower ``low`` and raise ``high`` to the bins of the rows; missing values raise only ``low``."""
    for row in rows:
        line = codes[row, begin : begin + len(low)]
        for c in range(len(low)):
            code = line[c]
            low[c] = min(low[c], code)
            high[c] = max(high[c], code if code != filled[c] else np.uint8(0))


@inlined
def _add_rows(
    codes: np.ndarray, begin: int, bound: np.ndarray, above: bool, derivatives: np.ndarray, rows: np.ndarray,
    sums: np.ndarray,
) -> None:  # fmt: skip
    """Add the derivatives of rows with a bin below the bound of each column, or not below it, to ``sums``.

    ``sums`` is (2 W + 1, columns) float64; its last row counts the rows. Four rows are added while a sum is held.
    """
    outputs, end, whole = derivatives.shape[1], begin + sums.shape[1], len(rows) // 4 * 4
    for i in range(0, whole, 4):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        of_a, of_b, of_c, of_d = derivatives[a], derivatives[b], derivatives[c], derivatives[d]
        lines = codes[a, begin:end], codes[b, begin:end], codes[c, begin:end], codes[d, begin:end]
        for k in range(outputs):
            values = np.float64(of_a[k]), np.float64(of_b[k]), np.float64(of_c[k]), np.float64(of_d[k])
            _add_four(lines, bound, above, values, sums[k])
        _add_four(lines, bound, above, (1.0, 1.0, 1.0, 1.0), sums[outputs])
    for i in range(whole, len(rows)):
        line, of_row = codes[rows[i], begin:end], derivatives[rows[i]]
        for k in range(outputs):
            _add_one(line, bound, above, np.float64(of_row[k]), sums[k])
        _add_one(line, bound, above, 1.0, sums[outputs])


@inlined
def _add_four(
    lines: tuple[np.ndarray, ...], bound: np.ndarray, above: bool, values: tuple[float, ...], sums: np.ndarray
) -> None:
    a, b, c, d = lines
    for j in range(len(sums)):
        total = sums[j]
        total += values[0] if (a[j] < bound[j]) != above else 0.0
        total += values[1] if (b[j] < bound[j]) != above else 0.0
        total += values[2] if (c[j] < bound[j]) != above else 0.0
        total += values[3] if (d[j] < bound[j]) != above else 0.0
        sums[j] = total


@inlined
def _add_one(line: np.ndarray, bound: np.ndarray, above: bool, value: float, sums: np.ndarray) -> None:
    for j in range(len(sums)):
        sums[j] += value if (line[j] < bound[j]) != above else 0.0


@compiled
def _places(features: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return the place of each of the features first..last - 1 among ``features``, -1 for the others."""
    positions = np.full(last - first, -1)
    for at, f in enumerate(features):
        positions[f - first] = at
    return positions


@compiled
def _draw_listed(
    bins: FeatureBins, share: Share, features: np.ndarray, positions: np.ndarray, rows: np.ndarray, draws: np.ndarray,
    number: int, sides: _Sides,
) -> None:  # fmt: skip
    """Draw the thresholds of sparse features, and count their missing values."""
    low, others = np.full(len(features), 256), np.zeros(len(features), np.int64)
    state = np.empty(1, np.uint64)
    for row in rows:
        for listed in range(share.start[row], share.start[row + 1]):
            f = share.owner[listed]
            at = positions[f - share.first]
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
            sides.drawn[at] = _draw(bins, f, low[at], sides.high[at], draws, number, state)


@compiled
def _add_listed(
    bins: FeatureBins, share: Share, features: np.ndarray, positions: np.ndarray, derivatives: np.ndarray,
    rows: np.ndarray, sums: np.ndarray, sides: _Sides,
) -> None:  # fmt: skip
    """Add up both sides of sparse features; ``sums`` (2 W,) belong to the node."""
    width = derivatives.shape[1]
    rest, others = np.zeros((len(features), width)), np.zeros(len(features), np.int64)
    for row in rows:
        for listed in range(share.start[row], share.start[row + 1]):
            f = share.owner[listed]
            at = positions[f - share.first]
            if at < 0:
                continue
            code = share.listed[listed] - bins.offset[f]
            others[at] += 1
            for k in range(width):
                rest[at, k] += derivatives[row, k]
            if code <= sides.drawn[at]:
                sides.here[at] += 1
                for k in range(width):
                    sides.left[at, k] += derivatives[row, k]
            elif code == bins.filled[f]:
                for k in range(width):
                    sides.absent[at, k] += derivatives[row, k]
    for at, f in enumerate(features):
        default = np.int64(bins.default[f])
        if default >= 0 and others[at] < len(rows):
            if default <= sides.drawn[at]:
                sides.here[at] += len(rows) - others[at]
                sides.left[at] += sums - rest[at]
            elif default == bins.filled[f]:
                sides.absent[at] += sums - rest[at]
