"""The best of one random cut for each feature, in a node of a boosted tree: by its rows, without histograms.

A node of few rows and many labels has fewer numbers than a histogram of it would have.
"""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.bins import Bins, Share
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.listed_cut import add_listed, draw_listed, places
from ldl.methods.forest.newton import LEAST, Newton, score_of, sides_score, write_cut
from ldl.methods.forest.sides import Sides, draw, make_sides

ROWS = 4096
"""Rows whose derivatives are read for all features together, so that they stay in the cache."""


@compiled
def best_random_cut(
    bins: Bins,
    share: Share,
    features: np.ndarray,
    derivatives: np.ndarray,
    rows: np.ndarray,
    sums: np.ndarray,
    rules: Newton,
    draws: np.ndarray,
    number: int,
    found: np.ndarray,
) -> None:
    """Write the best :class:`.newton.Cut` of a node within a share to ``found`` (5,) float64; of equal ones the first.

    A feature is cut after one of the bins from the lowest to the one before the highest that the node's rows fill, all
    as likely; and, where it misses values, between those and the others. Where it misses none, missing values go to the
    side with more rows, the left one of equal sides.

    Args:
        bins: The training rows.
        share: Whose features are looked at.
        features: Those that the tree may split by, rising.
        derivatives: (N, 2 W) float32, of all rows.
        rows: (n,) int32, the node's.
        sums: (2 W,) float64, those of the node's derivatives.
        rules: What a split must keep to.
        draws: (1,) uint64, what the tree's stream of random numbers begins with.
        number: The node's; a draw depends on it, on the feature, and on nothing else.
        found: Where the cut is written to.
    """
    base, best = score_of(sums, rules.l2), LEAST
    found[0] = 0.0
    first, last = np.searchsorted(features, share.first), np.searchsorted(features, share.last)
    own = features[first:last]
    sides = make_sides(len(own), len(sums))
    _draw(bins, own, rows, draws, number, sides)
    _add_up(bins, own, derivatives, rows, sides)
    if len(share.listed):
        place = places(own, share)
        draw_listed(bins, share, own, place, rows, draws, number, sides)
        add_listed(bins, share, own, place, derivatives, rows, sums, sides)
    left, absent, here, missing, edges = sides.left, sides.absent, sides.here, sides.missing, sides.edges
    count = len(rows)
    for at, f in enumerate(own):
        below, above = edges[at]
        if above >= 0:
            if here[at] >= rules.min_leaf and count - here[at] >= rules.min_leaf:
                gain = sides_score(left[at], sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_cut(found, gain, f, below, above, missing[at] == 0 and 2 * here[at] >= count)
            both = here[at] + missing[at]
            if missing[at] and both >= rules.min_leaf and count - both >= rules.min_leaf:
                gain = sides_score(left[at] + absent[at], sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_cut(found, gain, f, below, above, True)
        if missing[at] >= rules.min_leaf and count - missing[at] >= rules.min_leaf:
            gain = sides_score(absent[at], sums, rules.l2, rules.min_hessian) - base
            if gain > best:
                best = gain
                write_cut(found, gain, f, sides.high[at], -1, False)


@compiled
def _draw(bins: Bins, features: np.ndarray, rows: np.ndarray, draws: np.ndarray, number: int, sides: Sides) -> None:
    """Fill in what is drawn for features that are not sparse, and their missing values."""
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
        sides.drawn[at] = draw(bins, f, low, high, draws, number)
        sides.high[at], sides.missing[at] = high, absent


@compiled
def _add_up(bins: Bins, features: np.ndarray, derivatives: np.ndarray, rows: np.ndarray, sides: Sides) -> None:
    """Fill in the sums and the edges of features that are not sparse."""
    width = derivatives.shape[1]
    block = np.empty((min(ROWS, len(rows)), width), np.float32)
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        for i in range(len(part)):
            for k in range(width):
                block[i, k] = derivatives[part[i], k]
        for at, f in enumerate(features):
            if bins.default[f] >= 0:
                continue
            codes, filled, last, counted = bins.codes[f], bins.filled[f], sides.drawn[at], sides.missing[at] > 0
            low, high = sides.edges[at, 0], sides.edges[at, 1] if sides.edges[at, 1] >= 0 else 256
            for i in range(len(part)):
                code = np.int64(codes[part[i]])
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
