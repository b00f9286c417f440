"""Units of calibration: rows, or groups of rows such as subjects, of which later ones are exchangeable with them."""

from __future__ import annotations

import numpy as np

from ldl.errors import LDLError
from ldl.protocols import distinct

DRAWN_SCORES = 300_000
"""About so many scores are drawn in all, which determines the mean coverage to 0.1 points, for any number of units."""
LEAST_SCORES = 1000
"""The fewest scores that result, so that a level is met to 0.1 points."""


def units_of(rows: int, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit of every row, (rows,) from 0, and the sizes of the units. Raises LDLError for another shape."""
    if groups is None:
        return np.arange(rows), np.ones(rows, np.int64)
    if (shape := np.shape(groups)) != (rows,):
        raise LDLError(f"groups {shape} must name a group of every row, ({rows},)")
    _, unit, size = distinct(groups, return_inverse=True, return_counts=True)
    return unit, size


def weights_of(unit: np.ndarray, size: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the weight of every row in its unit, (N,): 1 a unit, or in proportion to weights, the sum of units."""
    rows: np.ndarray = 1 / size[unit]
    if weight is None or not (weight != weight[0]).any():
        return rows
    rows = rows * weight.astype(np.float64)
    return rows * (len(size) / rows.sum())


def mean_rank_scores(score: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return scores of equal weight that calibrate for a random row of a new unit, or for a random label of the row.

    Draw one score of every unit, and sort them. They are exchangeable with the score of a random row of a new unit, so
    the threshold of rank ceil(level (K + 1)) among the K of them is exact, whatever the rows of a unit have in common
    (subsampling once, Dunn, Wasserman & Ramdas, JASA 2023). It depends on the draw, though, and most rows are not used.
    Therefore scores are drawn many times, and the result has the mean over the draws, for each of the K ranks. A mean
    of the scores themselves would depend on their scale: the mean is that of their ranks among all scores, as shares of
    the weight, and becomes a score again by linear interpolation. Scores between the K ranks follow by interpolation
    too, so that a level that no rank has exactly is not rounded up.

    Coverage is exact if the scores of a unit are equal, or if they are unrelated. In between, it is within a point of
    the level in simulations (``benchmarks/coverage_of_groups.py``).

    Args:
        score: (M,) of rows, or of labels of rows.
        weight: (M,) above 0, the shares of the scores in their unit, which sum to 1 in each of the K units.
        unit: (M,) integers from 0.

    Returns:
        (K s,) rising, with s of at least 1: the score of rank k is that of number k s.
    """
    # Units are sorted by their mean scores, so that neither the order of rows nor the names of groups matter.
    order = np.lexsort((score, unit, np.bincount(unit, weight * score)[unit]))
    score, weight = score[order], weight[order]
    first = np.flatnonzero(np.diff(unit[order], prepend=-1))
    rising = np.argsort(score, kind="stable")
    rank = np.empty(len(score))
    rank[rising] = weight[rising].cumsum()
    mean_rank = _mean_ranks(rank, weight, first)
    steps = -(-LEAST_SCORES // len(mean_rank))
    between = np.arange(1, len(mean_rank) * steps + 1) / steps
    between = np.interp(between, np.arange(len(mean_rank) + 1), [0.0, *mean_rank])
    return np.interp(between, rank[rising], score[rising])


def _mean_ranks(rank: np.ndarray, weight: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the mean ranks (K,) of the lowest of one entry of each unit, of the second lowest, and so on.

    Args:
        rank: (M,) of the entries among all, in shares of the weight; the entries of a unit stand together.
        weight: (M,) of the entries.
        first: (K,) number of the first entry of each unit.
    """
    end, units = weight.cumsum(), len(first)
    chance = np.random.default_rng(0).random((-(-DRAWN_SCORES // units), units))
    drawn = np.searchsorted(end, end[first] - weight[first] + chance, side="right").clip(max=len(rank) - 1)
    mean: np.ndarray = np.sort(rank[drawn], axis=1).mean(0)
    return mean
