"""Histograms of derivatives, and the split of a node that lowers a quadratic model of the loss most.

A histogram holds the sums of the derivatives of a node's rows by bin; that of one child is the parent's less that of
the other child (Ke et al. 2017). With the sums G_c of the gradients and H_c of the second derivatives, the best
constant step of output c is -G_c / (H_c + l2). It lowers the model by half of sum_c G_c^2 / (H_c + l2), the *score* of
the node. The gain of a split is the score of both sides less that of the node (Chen & Guestrin 2016, Eq. 6 and 7), here
for leaves with vectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.binning import FeatureBins, Share
from ldl.methods.numba_kernels import compiled, inlined, inlined_fast

CACHED_ROWS = 512
"""Rows whose derivatives stay in a core's cache while they are added to all features."""
TOGETHER = 1 << 16
"""Rows that are summed in float32 before they are added to the rest: one long sum would lose precision."""
LEAST_GAIN = 1e-6
"""Smallest gain of a split: less is rounding."""
TINY = 1e-9
"""Smallest divisor of a score, for an l2 of 0 and vanishing second derivatives."""


class Histogram(NamedTuple):
    """Sums over a node's rows in each bin of all features.

    Attributes:
        sums: (B, 2 W) float32, gradients of W outputs, then their second derivatives.
        rows: (B,) int32, numbers of rows.
    """

    sums: np.ndarray
    rows: np.ndarray


class Newton(NamedTuple):
    """Hyperparameters of splits; see :class:`ldl.heads.boosted_trees.BoostedTrees`."""

    l2: float
    min_leaf: int
    min_hessian: float
    random: bool = False


class BinSplit(NamedTuple):
    """A split of a node, as compiled code writes it: rows in bins of ``feature`` up to ``below`` go left.

    Attributes:
        gain: Above 0; 0 for no split.
        feature: The feature, -1 for no split.
        below: Its last bin on the left.
        above: Its first bin on the right that has rows; -1 if only missing values go right.
        missing_left: Whether missing values go left.
    """

    gain: float
    feature: int
    below: int
    above: int
    missing_left: bool


@compiled
def total(derivatives: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the sum (2 W,) float64 of the derivatives (N, 2 W) of some rows."""
    width = derivatives.shape[1]
    sums = np.zeros(width)
    for row in rows:
        for k in range(width):
            sums[k] += np.float64(derivatives[row, k])
    return sums


@compiled
def accumulate(
    bins: FeatureBins, share: Share, features: np.ndarray, derivatives: np.ndarray, rows: np.ndarray, sums: np.ndarray,
    histogram: Histogram,
) -> None:  # fmt: skip
    """Fill the histogram of a node for those of the ``features`` (rising) that are in a share.

    ``rows`` are the rows of the node, ``sums`` is the :func:`total` of their ``derivatives``.
    """
    begin, end = bins.offset[share.first], bins.offset[share.last]
    dense = np.array([f for f in features if share.first <= f < share.last and bins.default[f] < 0], np.int64)
    # Rows list all sparse features, whether or not they are among ``features``.
    sparse = np.array([f for f in range(share.first, share.last) if bins.default[f] >= 0], np.int64)
    used = np.concatenate((dense, sparse))
    whole, counts = histogram.sums[begin:end], histogram.rows[begin:end]
    partial = np.empty_like(whole) if len(rows) > TOGETHER else whole
    for f in used:
        counts[_bins_of(bins, f, begin)] = 0
    for first in range(0, max(len(rows), 1), TOGETHER):
        block, into = rows[first : first + TOGETHER], partial if first else whole
        for f in used:
            into[_bins_of(bins, f, begin)] = 0
        if len(dense):
            _add_dense(bins, dense, begin, derivatives, block, into, counts)
        if len(sparse):
            _add_listed(share.start, share.listed, begin, derivatives, block, into, counts)
        if first:
            for f in used:
                whole[_bins_of(bins, f, begin)] += partial[_bins_of(bins, f, begin)]
    for f in features:
        if share.first <= f < share.last and bins.default[f] >= 0:
            _fill_default(bins, f, len(rows), sums, histogram)


@inlined
def _bins_of(bins: FeatureBins, f: int, begin: int) -> slice:
    """Return the bins of a feature, counted from ``begin``."""
    return slice(bins.offset[f] - begin, bins.offset[f + 1] - begin)


@inlined
def _add_dense(
    bins: FeatureBins, dense: np.ndarray, begin: int, derivatives: np.ndarray, rows: np.ndarray, sums: np.ndarray,
    counts: np.ndarray,
) -> None:  # fmt: skip
    for first in range(0, len(rows), CACHED_ROWS):
        block = rows[first : first + CACHED_ROWS]
        for f in dense:
            _add_codes(
                bins.codes[f], derivatives, block, sums[_bins_of(bins, f, begin)], counts[_bins_of(bins, f, begin)]
            )


@inlined_fast
def _add_codes(
    codes: np.ndarray, derivatives: np.ndarray, rows: np.ndarray, sums: np.ndarray, counts: np.ndarray
) -> None:
    """Add rows to the bins of one feature; a function of plain arrays, which the compiler can vectorise."""
    for i in range(len(rows)):
        # Unsigned: a number that might be negative would cost a branch at each use.
        row = np.uint32(rows[i])
        at = codes[row]
        counts[at] += 1
        for k in range(derivatives.shape[1]):
            sums[at, k] += derivatives[row, k]


@inlined_fast
def _add_listed(
    start: np.ndarray, listed: np.ndarray, begin: int, derivatives: np.ndarray, rows: np.ndarray, sums: np.ndarray,
    counts: np.ndarray,
) -> None:  # fmt: skip
    for row in rows:
        for position in range(start[row], start[row + 1]):
            at = listed[position] - begin
            counts[at] += 1
            for k in range(derivatives.shape[1]):
                sums[at, k] += derivatives[row, k]


@inlined
def _fill_default(bins: FeatureBins, f: int, count: int, sums: np.ndarray, histogram: Histogram) -> None:
    rest = sums.copy()
    default = bins.offset[f] + bins.default[f]
    for at in range(bins.offset[f], bins.offset[f + 1]):
        if at != default and histogram.rows[at]:
            count -= histogram.rows[at]
            for k in range(len(rest)):
                rest[k] -= np.float64(histogram.sums[at, k])
    histogram.rows[default] = count
    for k in range(len(rest)):
        histogram.sums[default, k] = rest[k]


@compiled
def subtract(bins: FeatureBins, share: Share, features: np.ndarray, histogram: Histogram, sibling: Histogram) -> None:
    """Subtract the histogram of a child from its parent's, which becomes that of the other child."""
    for f in features:
        if share.first <= f < share.last:
            for at in range(bins.offset[f], bins.offset[f + 1]):
                if sibling.rows[at]:
                    histogram.rows[at] -= sibling.rows[at]
                    for k in range(sibling.sums.shape[1]):
                        histogram.sums[at, k] -= sibling.sums[at, k]


@inlined_fast
def score_of(sums: np.ndarray, l2: float) -> float:
    """Return the score of a node from its sums (2 W,)."""
    width = len(sums) // 2
    score = 0.0
    for c in range(width):
        score += sums[c] * sums[c] / max(sums[width + c] + l2, TINY)
    return score


@inlined_fast
def sides_score(left: np.ndarray, whole: np.ndarray, l2: float, least: float) -> float:
    """Return the scores of both sides together, or -1 if one of them has too little second derivative."""
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
def best_split(
    bins: FeatureBins, share: Share, features: np.ndarray, histogram: Histogram, sums: np.ndarray, count: int,
    rules: Newton, split: np.ndarray,
) -> None:  # fmt: skip
    """Write the best :class:`BinSplit` of a node within a share to ``split`` (5,) float64; of equal ones the first.

    ``sums`` (2 W,) float64 and ``count`` belong to the node. If a feature has no missing value in the node, missing
    values go to the side with more rows, or left if both are equal.
    """
    left, with_missing = np.empty(len(sums)), np.empty(len(sums))
    best = LEAST_GAIN
    base = score_of(sums, rules.l2)
    split[0] = 0.0
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
                        write_split(split, gain, f, below, above, missing == 0 and 2 * rows >= count)
                rest = count - rows - missing
                if missing and above >= 0 and rows + missing >= rules.min_leaf and rest >= rules.min_leaf:
                    for k in range(len(left)):
                        with_missing[k] = left[k] + histogram.sums[last, k]
                    gain = sides_score(with_missing, sums, rules.l2, rules.min_hessian) - base
                    if gain > best:
                        best = gain
                        write_split(split, gain, f, below, above, True)
            if at < last:
                rows += histogram.rows[at]
                below = above
                for k in range(len(left)):
                    left[k] += histogram.sums[at, k]


@inlined
def write_split(split: np.ndarray, gain: float, feature: int, below: int, above: int, missing_left: bool) -> None:
    """Write the fields of a :class:`BinSplit` to ``split``."""
    split[0], split[1], split[2], split[3], split[4] = gain, feature, below, above, missing_left
