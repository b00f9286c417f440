"""Training features as the grower reads them: a column a feature, and its rows in the order of their values."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ldl.methods.forest.binning import BINS, bin_features, check_count
from ldl.methods.forest.compiled import compiled, inlined

Layout = Literal["ordered", "binned", "plain"]


class Columns(NamedTuple):
    """The training set: what the search at hand needs of it, the rest empty.

    A feature in which one value holds at least half of the rows is *sparse*: that value is its default, and only
    the other rows are listed. Growing then costs what the listed rows cost (a film has 11 of 1869 features).

    Attributes:
        start: (F + 1,) int64; feature f lists ``rows[start[f]:start[f + 1]]``.
        rows: Listed rows of each feature by rising value, int32.
        listed: Their values, float32.
        default: (F,) float32, NaN for a feature without a default.
        values: (F, N) float32, all values.
        codes: (F, N) uint8, the bin of each value.
        low: (F, 256) float32, the smallest value in each bin.
        high: (F, 256) float32, the largest.
    """

    start: np.ndarray
    rows: np.ndarray
    listed: np.ndarray
    default: np.ndarray
    values: np.ndarray
    codes: np.ndarray
    low: np.ndarray
    high: np.ndarray


def make_columns(features: np.ndarray, kind: Layout, bins: int = BINS, threads: int = 1) -> Columns:
    """Columns of features (N, F), finite float32: rows in order, quantile bins, or the values alone.

    ``threads`` share the features where they are binned.
    """
    width = features.shape[1]
    start, default = np.zeros(width + 1, np.int64), np.full(width, np.nan, np.float32)
    rows, listed = [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    if kind == "binned":
        codes, low, high = bin_features(features, bins, threads=threads)[:3]
    else:
        codes, low, high = np.empty((width, 0), np.uint8), *np.zeros((2, width, 0), np.float32)
    for f in range(width if kind == "ordered" else 0):
        column = np.ascontiguousarray(features[:, f])
        default[f] = _majority(column)
        # NaN, which marks no default, is unequal to everything.
        others = np.flatnonzero(column != default[f]).astype(np.int32)
        others = others[np.argsort(column[others])]
        start[f + 1] = start[f] + len(others)
        check_count(int(start[f + 1]))
        rows.append(others)
        listed.append(column[others])
    values = np.ascontiguousarray(features.T) if kind == "plain" else np.empty((width, 0), np.float32)
    return Columns(start, np.concatenate(rows), np.concatenate(listed), default, values, codes, low, high)


@compiled
def _majority(column: np.ndarray) -> float:
    """The value that at least half of the rows have, or NaN."""
    # It survives when unequal values cancel in pairs; where it has just half, the last row decides.
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


@inlined
def midpoint(below: float, above: float) -> float:
    """The float32 half-way between two float32, but never ``above`` itself: ``below`` <= it < ``above``."""
    middle = np.float32(0.5 * (np.float64(below) + np.float64(above)))
    return middle if middle < above else below
