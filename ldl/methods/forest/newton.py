"""The split that lowers a quadratic model of the loss most (Chen & Guestrin 2016, Eq. 6 and 7), for vector leaves.

With the sums G_c of the gradients and H_c of the second derivatives of a node's rows, the best constant step is
-G_c / (H_c + l2) for each output c, and lowers the model by half of sum_c G_c^2 / (H_c + l2), the node's *score*. The
gain of a split is the score of both sides less that of the node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.bins import Bins, Share
from ldl.methods.forest.compiled import compiled, inlined, inlined_fast
from ldl.methods.forest.histograms import Histogram

LEAST = 1e-6
"""A split must gain at least so much: less is rounding."""
TINY = 1e-9
"""Least divisor of a score, where l2 is 0 and the second derivatives vanish."""


class Newton(NamedTuple):
    """What a split must keep to; see :class:`ldl.heads.boosted_trees.BoostedTrees`."""

    l2: float
    min_leaf: int
    min_hessian: float
    random: bool = False


class Cut(NamedTuple):
    """A split of a node: rows of feature ``feature`` in bins up to ``below`` go left.

    Attributes:
        gain: Above 0; 0 for no split.
        feature: The feature.
        below: Its last bin on the left.
        above: Its first bin on the right that has rows; -1 where only missing values go right.
        missing_left: Whether missing values go left.
    """

    gain: float
    feature: int
    below: int
    above: int
    missing_left: bool


NO_CUT = Cut(0.0, -1, -1, -1, False)


@inlined_fast
def score_of(sums: np.ndarray, l2: float) -> float:
    width = len(sums) // 2
    score = 0.0
    for c in range(width):
        score += sums[c] * sums[c] / max(sums[width + c] + l2, TINY)
    return score


@inlined_fast
def sides_score(left: np.ndarray, whole: np.ndarray, l2: float, least: float) -> float:
    """Scores of both sides together, or -1 where one of them has too little second derivative."""
    width = len(left) // 2
    score, hessian, all_ = 0.0, 0.0, 0.0
    for c in range(width):
        g, h = left[c], left[width + c]
        rest_g, rest_h = whole[c] - g, whole[width + c] - h
        score += g * g / max(h + l2, TINY) + rest_g * rest_g / max(rest_h + l2, TINY)
        hessian += h
        all_ += whole[width + c]
    return score if hessian >= least and all_ - hessian >= least else -1.0


@compiled
def best_cut(
    bins: Bins,
    share: Share,
    features: np.ndarray,
    histogram: Histogram,
    sums: np.ndarray,
    count: int,
    rules: Newton,
    found: np.ndarray,
) -> None:
    """Write the best :class:`Cut` of a node within a share to ``found`` (5,) float64; of equal ones the first.

    ``sums`` (2 W,) float64 and ``count`` are the node's. Where a feature misses no value in the node, missing ones go
    to the side with more rows, the left one of equal sides.
    """
    left, with_missing = np.empty(len(sums)), np.empty(len(sums))
    best = LEAST
    base = score_of(sums, rules.l2)
    found[0] = 0.0
    for f in features:
        if not share.first <= f < share.last:
            continue
        begin, last = bins.offset[f], bins.offset[f] + bins.filled[f]
        missing = histogram.rows[last] if bins.offset[f + 1] > last else 0
        left[:] = 0.0
        rows, below = 0, -1
        for at in range(begin, last + 1):
            above = at - begin if at < last else -1
            if at < last and histogram.rows[at] == 0:
                continue
            if below >= 0 and (above >= 0 or missing):
                # Missing values to the right, then to the left.
                if rows >= rules.min_leaf and count - rows >= rules.min_leaf:
                    gain = sides_score(left, sums, rules.l2, rules.min_hessian) - base
                    if gain > best:
                        best = gain
                        write_cut(found, gain, f, below, above, missing == 0 and 2 * rows >= count)
                rest = count - rows - missing
                if missing and above >= 0 and rows + missing >= rules.min_leaf and rest >= rules.min_leaf:
                    for k in range(len(left)):
                        with_missing[k] = left[k] + histogram.sums[last, k]
                    gain = sides_score(with_missing, sums, rules.l2, rules.min_hessian) - base
                    if gain > best:
                        best = gain
                        write_cut(found, gain, f, below, above, True)
            if at < last:
                rows += histogram.rows[at]
                below = above
                for k in range(len(left)):
                    left[k] += histogram.sums[at, k]


@inlined
def write_cut(found: np.ndarray, gain: float, feature: int, below: int, above: int, missing_left: bool) -> None:
    found[0], found[1], found[2], found[3], found[4] = gain, feature, below, above, missing_left


def first_best(found: np.ndarray) -> Cut:
    """The best of the cuts (n, 5) of several shares, in the order of their features."""
    gain, feature, below, above, missing_left = found[found[:, 0].argmax()]
    if gain <= 0:
        return NO_CUT
    return Cut(float(gain), int(feature), int(below), int(above), bool(missing_left))
