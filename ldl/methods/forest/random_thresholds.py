"""The best of one random threshold per feature in a node of a boosted tree (extra-trees), without histograms.

A node of few rows and many labels has fewer numbers than its histogram would have.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.binning import FeatureBins, Share
from ldl.methods.forest.histograms import LEAST_GAIN, Newton, score_of, sides_score, write_split
from ldl.methods.numba_kernels import compiled, inlined, next_share, substream

BLOCK_ROWS = 4096
"""Rows whose derivatives are read for all features together, so that they stay in the cache."""


class _Sides(NamedTuple):
    """Both sides of one threshold for each of K features.

    Attributes:
        drawn: (K,) int64, the last bin on the left, -1 if no row has a value.
        high: (K,) int64, the highest bin with a row, -1 for none.
        missing: (K,) int64, rows without a value.
        left: (K, 2 W) float64, sums of the derivatives of the rows on the left.
        absent: (K, 2 W) float64, sums of the derivatives of the rows without a value.
        here: (K,) int64, rows on the left.
        edges: (K, 2) int64, the bins with rows next to the threshold, the upper one -1 if no row is above it.
    """

    drawn: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    left: np.ndarray
    absent: np.ndarray
    here: np.ndarray
    edges: np.ndarray


@compiled
def best_random_split(
    bins: FeatureBins, share: Share, features: np.ndarray, derivatives: np.ndarray, rows: np.ndarray, sums: np.ndarray,
    rules: Newton, draws: np.ndarray, number: int, split: np.ndarray,
) -> None:  # fmt: skip
    """Write the best :class:`.histograms.BinSplit` of a node within a share to ``split``; of equal ones the first.

    A feature is split after one of the bins from the lowest to the one before the highest with a row of the node, all
    equally likely, and, if values are missing, between missing and other values. If none is missing, missing values go
    to the side with more rows, or left if both are equal.

    Args:
        bins: The training rows.
        share: The features of this thread.
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
    first, last = np.searchsorted(features, share.first), np.searchsorted(features, share.last)
    tried = features[first:last]
    sides = _make_sides(len(tried), len(sums))
    _draw_dense(bins, tried, rows, draws, number, sides)
    _add_dense(bins, tried, derivatives, rows, sides)
    if len(share.listed):
        positions = _places(tried, share)
        _draw_listed(bins, share, tried, positions, rows, draws, number, sides)
        _add_listed(bins, share, tried, positions, derivatives, rows, sums, sides)
    left, absent, here, missing, edges = sides.left, sides.absent, sides.here, sides.missing, sides.edges
    count = len(rows)
    for at, f in enumerate(tried):
        below, above = edges[at]
        if above >= 0:
            if here[at] >= rules.min_leaf and count - here[at] >= rules.min_leaf:
                gain = sides_score(left[at], sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_split(split, gain, f, below, above, missing[at] == 0 and 2 * here[at] >= count)
            both = here[at] + missing[at]
            if missing[at] and both >= rules.min_leaf and count - both >= rules.min_leaf:
                gain = sides_score(left[at] + absent[at], sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_split(split, gain, f, below, above, True)
        if missing[at] >= rules.min_leaf and count - missing[at] >= rules.min_leaf:
            gain = sides_score(absent[at], sums, rules.l2, rules.min_hessian) - base
            if gain > best:
                best = gain
                write_split(split, gain, f, sides.high[at], -1, False)


@compiled
def _make_sides(count: int, width: int) -> _Sides:
    """Return the sides of ``count`` features and ``width`` derivatives before any row is added."""
    none = np.full(count, -1)
    nothing, zeros = np.zeros((count, width)), np.zeros(count, np.int64)
    return _Sides(none, none.copy(), zeros, nothing, nothing.copy(), zeros.copy(), np.full((count, 2), -1))


@inlined
def _draw(bins: FeatureBins, f: int, low: int, high: int, draws: np.ndarray, number: int) -> int:
    """Draw the last bin on the left, from ``low`` to the one before ``high``; -1 if there is no bin."""
    state = np.empty(1, np.uint64)
    state[0] = substream(draws, number * len(bins.filled) + f)
    return low + int(next_share(state) * (high - low)) if high >= 0 else -1


@compiled
def _draw_dense(
    bins: FeatureBins, features: np.ndarray, rows: np.ndarray, draws: np.ndarray, number: int, sides: _Sides
) -> None:
    """Draw the thresholds of features that are not sparse, and count their missing values."""
    for at, f in enumerate(features):
        if bins.default[f] >= 0:
            continue
        codes, filled = bins.codes[f], bins.filled[f]
        low, high, absent = 256, -1, 0
        for row in rows:
            code = np.int64(codes[row])
            if code == filled:
                absent += 1
            else:
                low, high = min(low, code), max(high, code)
        sides.drawn[at] = _draw(bins, f, low, high, draws, number)
        sides.high[at], sides.missing[at] = high, absent


@compiled
def _add_dense(
    bins: FeatureBins, features: np.ndarray, derivatives: np.ndarray, rows: np.ndarray, sides: _Sides
) -> None:
    """Add up both sides of features that are not sparse, and find the edges."""
    width = derivatives.shape[1]
    block = np.empty((min(BLOCK_ROWS, len(rows)), width), np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        chunk = rows[start : start + BLOCK_ROWS]
        for i in range(len(chunk)):
            for k in range(width):
                block[i, k] = derivatives[chunk[i], k]
        for at, f in enumerate(features):
            if bins.default[f] >= 0:
                continue
            codes, filled, last, counted = bins.codes[f], bins.filled[f], sides.drawn[at], sides.missing[at] > 0
            low, high = sides.edges[at, 0], sides.edges[at, 1] if sides.edges[at, 1] >= 0 else 256
            for i in range(len(chunk)):
                code = np.int64(codes[chunk[i]])
                if code <= last:
                    sides.here[at] += 1
                    low = max(low, code)
                    for k in range(width):
                        sides.left[at, k] += block[i, k]
                elif code < filled:
                    high = min(high, code)
                elif counted:
                    for k in range(width):
                        sides.absent[at, k] += block[i, k]
            sides.edges[at, 0], sides.edges[at, 1] = low, high if high < 256 else -1


@compiled
def _places(features: np.ndarray, share: Share) -> np.ndarray:
    """Return the place of each feature of a share among ``features``, -1 for the others."""
    positions = np.full(share.last - share.first, -1)
    for at, f in enumerate(features):
        positions[f - share.first] = at
    return positions


@compiled
def _draw_listed(
    bins: FeatureBins, share: Share, features: np.ndarray, positions: np.ndarray, rows: np.ndarray, draws: np.ndarray,
    number: int, sides: _Sides,
) -> None:  # fmt: skip
    """Draw the thresholds of sparse features, and count their missing values."""
    low, others = np.full(len(features), 256), np.zeros(len(features), np.int64)
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
            sides.drawn[at] = _draw(bins, f, low[at], sides.high[at], draws, number)


@compiled
def _add_listed(
    bins: FeatureBins, share: Share, features: np.ndarray, positions: np.ndarray, derivatives: np.ndarray,
    rows: np.ndarray, sums: np.ndarray, sides: _Sides,
) -> None:  # fmt: skip
    """Add up both sides of sparse features, and find the edges; ``sums`` (2 W,) belong to the node."""
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
            _count_edges(bins, f, at, code, 1, sides)
            if code <= sides.drawn[at]:
                for k in range(width):
                    sides.left[at, k] += derivatives[row, k]
            elif code == bins.filled[f]:
                for k in range(width):
                    sides.absent[at, k] += derivatives[row, k]
    for at, f in enumerate(features):
        default = np.int64(bins.default[f])
        if default >= 0 and others[at] < len(rows):
            _count_edges(bins, f, at, default, len(rows) - others[at], sides)
            if default <= sides.drawn[at]:
                sides.left[at] += sums - rest[at]
            elif default == bins.filled[f]:
                sides.absent[at] += sums - rest[at]


@compiled
def _count_edges(bins: FeatureBins, f: int, at: int, code: int, count: int, sides: _Sides) -> None:
    """Count rows of a bin, and move the edges towards it."""
    edges = sides.edges[at]
    if code <= sides.drawn[at]:
        sides.here[at] += count
        edges[0] = max(edges[0], code)
    elif code < bins.filled[f]:
        edges[1] = code if edges[1] < 0 else min(edges[1], code)
