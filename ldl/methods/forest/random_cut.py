"""The best of one random cut for each feature, in a node of a boosted tree: by its rows, without histograms.

A node of few rows and many labels has fewer numbers than a histogram of it would have.
"""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.bins import Bins, Share
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.draws import next_share, substream
from ldl.methods.forest.newton import LEAST, Newton, score_of, sides_score, write_cut


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
    width, count = len(sums), len(rows)
    left, absent, state = np.empty(width), np.empty(width), np.empty(1, np.uint64)
    # In the order in which every feature is passed over.
    own, code_of = np.empty((count, width), np.float32), np.empty(count, np.uint8)
    for i in range(count):
        for k in range(width):
            own[i, k] = derivatives[rows[i], k]
    base, best = score_of(sums, rules.l2), LEAST
    found[0] = 0.0
    for f in features:
        if not share.first <= f < share.last:
            continue
        codes, filled = bins.codes[f], bins.filled[f]
        low, high, missing = 256, -1, 0
        for i in range(count):
            code = np.int64(codes[rows[i]])
            code_of[i] = code
            if code == filled:
                missing += 1
            else:
                low, high = min(low, code), max(high, code)
        if high < 0 or (low == high and missing == 0):
            continue
        state[0] = substream(draws, number * len(bins.filled) + f)
        drawn = low + int(next_share(state) * (high - low))
        left[:] = 0.0
        absent[:] = 0.0
        below, above, here = -1, 256, 0
        for i in range(count):
            code = np.int64(code_of[i])
            if code <= drawn:
                here += 1
                below = max(below, code)
                for k in range(width):
                    left[k] += own[i, k]
            elif code < filled:
                above = min(above, code)
            elif missing:
                for k in range(width):
                    absent[k] += own[i, k]
        if low < high:
            if here >= rules.min_leaf and count - here >= rules.min_leaf:
                gain = sides_score(left, sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_cut(found, gain, f, below, above, missing == 0 and 2 * here >= count)
            if missing and here + missing >= rules.min_leaf and count - here - missing >= rules.min_leaf:
                for k in range(width):
                    left[k] += absent[k]
                gain = sides_score(left, sums, rules.l2, rules.min_hessian) - base
                if gain > best:
                    best = gain
                    write_cut(found, gain, f, below, above, True)
        if missing >= rules.min_leaf and count - missing >= rules.min_leaf:
            for k in range(width):
                left[k] = sums[k] - absent[k]
            gain = sides_score(left, sums, rules.l2, rules.min_hessian) - base
            if gain > best:
                best = gain
                write_cut(found, gain, f, high, -1, False)
