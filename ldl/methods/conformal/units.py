"""Units of calibration: rows, or groups of rows such as subjects, of which later ones are exchangeable with them."""

from __future__ import annotations

import numpy as np

from ldl.errors import LDLError
from ldl.protocols import distinct

DRAWN_SCORES = 300_000
"""About so many scores are drawn in all, which determines the mean coverage to 0.1 points, for any number of units."""


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


def one_score_a_unit(score: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return as many scores as there are units, which calibrate for a random row, or label of it, of a new unit.

    Draw one score of every unit, and sort them. They are exchangeable with the score of a random row of a new unit, so
    the threshold of rank ceil(level (K + 1)) among the K of them is exact, whatever the rows of a unit have in common
    (subsampling once, Dunn, Wasserman & Ramdas, JASA 2023). It depends on the draw, though, and most rows are not used.
    Therefore scores are drawn many times, and the result has the mean over the draws, for each of the K ranks. A mean
    of the scores themselves would depend on their scale: the mean is that of their ranks among all scores, as shares of
    the weight, and becomes a score again by linear interpolation.

    The result is exact if the scores of a unit are equal, or if they are unrelated. In between, simulations have a mean
    coverage within one point of the level (``benchmarks/coverage_of_groups.py``).

    Args:
        score: (M,) of rows, or of labels of rows.
        weight: (M,) above 0, the shares of the scores in their unit; they sum to the number of units K.
        unit: (M,) integers.

    Returns:
        (K,) rising.
    """
    # Sorted by score too, so that the order of the rows does not matter.
    order = np.lexsort((score, unit))
    score, weight = score[order], weight[order]
    first = np.flatnonzero(np.diff(unit[order], prepend=unit.min() - 1))
    of_unit = np.add.reduceat(weight, first)
    end = weight.cumsum()
    rising = np.argsort(score, kind="stable")
    rank = np.empty(len(score))
    rank[rising] = weight[rising].cumsum()

    units = round(end[-1])
    draws = -(-DRAWN_SCORES // units)
    chance = np.random.default_rng(0).random((draws, len(first)))
    drawn = np.searchsorted(end, end[first] - weight[first] + chance * of_unit, side="right")
    drawn_rank = rank[drawn.clip(max=len(score) - 1)]
    by_rank = np.argsort(drawn_rank, axis=1)
    # Of a draw, the k-th score is the first with which the weights of the units reach k; all draws are searched in one.
    after = 2 * units * np.arange(draws)[:, None]
    reached = of_unit[by_rank].cumsum(1) + after
    place = np.searchsorted(reached.ravel(), (np.arange(1, units + 1) - 1e-6 + after).ravel())
    mean_rank = np.take_along_axis(drawn_rank, by_rank, 1).ravel()[place].reshape(draws, units).mean(0)
    return np.interp(mean_rank, rank[rising], score[rising])
