"""Training features as the grower reads them: a column a feature, and its rows in the order of their values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.forest.compiled import compiled, inlined

BINS = 256


class Columns(NamedTuple):
    """All rows of the training set.

    A feature in which one value holds at least half of the rows is *sparse*: that value is its default, and only
    the other rows are listed. Growing then costs what the listed rows cost (a film has 11 of 1869 features).

    Attributes:
        values: (F, N) float32.
        order: Listed rows of feature f, by rising value, are ``order[start[f]:start[f + 1]]``, int32; rows of
            equal value rise. Empty where the search needs no order.
        start: (F + 1,) int64.
        default: (F,) float32, NaN for a feature without a default.
        codes: (F, N) uint8, the bin of each value, for ``histogram``; else empty.
        low: (F, 256) float32, the smallest value in each bin; likewise.
        high: (F, 256) float32, the largest; likewise.
    """

    values: np.ndarray
    order: np.ndarray
    start: np.ndarray
    default: np.ndarray
    codes: np.ndarray
    low: np.ndarray
    high: np.ndarray


def make_columns(features: np.ndarray, ordered: bool, binned: bool, bins: int = BINS) -> Columns:
    """Columns of features (N, F), finite float32; with the order of rows, with quantile bins, or with neither.

    Bins hold about equally many rows; where a feature has at most ``bins`` values, each has a bin of its own.
    """
    values = np.ascontiguousarray(features.T)
    width, count = values.shape
    order, start, default = np.empty(0, np.int32), np.zeros(width + 1, np.int64), np.full(width, np.nan, np.float32)
    if ordered:
        _find_defaults(values, start, default)
        order = np.empty(start[-1], np.int32)
        _sort_rows(values, start, default, order)
    codes = np.empty((width if binned else 0, count), np.uint8)
    low, high = (np.zeros((len(codes), BINS), np.float32) for _ in range(2))
    if binned:
        _fill_bins(values, bins, codes, low, high)
    return Columns(values, order, start, default, codes, low, high)


@compiled
def _find_defaults(values: np.ndarray, start: np.ndarray, default: np.ndarray) -> None:
    for f in range(values.shape[0]):
        column = values[f]
        # A value that holds the majority survives when unequal values cancel in pairs.
        candidate, votes = column[0], 0
        for value in column:
            if votes == 0:
                candidate = value
            votes += 1 if value == candidate else -1
        listed = 0
        for value in column:
            listed += value != candidate
        if 2 * listed <= len(column):
            default[f] = candidate
        else:
            listed = len(column)
        start[f + 1] = start[f] + listed


@compiled
def _sort_rows(values: np.ndarray, start: np.ndarray, default: np.ndarray, order: np.ndarray) -> None:
    for f in range(values.shape[0]):
        column = values[f]
        place = start[f]
        for row in range(len(column)):
            # NaN, which marks no default, is unequal to everything.
            if column[row] != default[f]:
                order[place] = row
                place += 1
        listed = order[start[f] : place]
        listed[:] = listed[np.argsort(column[listed], kind="mergesort")]


@compiled
def _fill_bins(values: np.ndarray, bins: int, codes: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    count = values.shape[1]
    for f in range(values.shape[0]):
        order = np.argsort(values[f], kind="mergesort")
        column = values[f][order]
        distinct = 1
        for i in range(1, count):
            distinct += column[i] != column[i - 1]
        bin_, filled = 0, 0
        low[f, 0] = column[0]
        left = count
        for i in range(count):
            if i > 0 and column[i] != column[i - 1]:
                # Full when it holds its share of the rows that are left.
                if distinct <= bins or filled * (bins - bin_) >= left:
                    left -= filled
                    bin_, filled = bin_ + 1, 0
                    low[f, bin_] = column[i]
            high[f, bin_] = column[i]
            codes[f, order[i]] = bin_
            filled += 1


@inlined
def midpoint(below: float, above: float) -> float:
    """The float32 half-way between two float32, but never ``above`` itself: ``below`` <= it < ``above``."""
    middle = np.float32(0.5 * (np.float64(below) + np.float64(above)))
    return middle if middle < above else below
