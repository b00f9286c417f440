"""The figures of the benchmark: ODS, OIS, AP, R50, from pixel counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.benchmark.counting import Counts


class Curve(NamedTuple):
    """Precision and recall at each threshold, (T,) float64 in 0..1; 0 where there is nothing to divide by."""

    recall: np.ndarray
    precision: np.ndarray

    @property
    def f(self) -> np.ndarray:
        """F-measure, (T,): the harmonic mean of the two."""
        return f_measure(self.recall, self.precision)


class Optimum(NamedTuple):
    """The threshold of the greatest F-measure, and what holds there."""

    threshold: float
    recall: float
    precision: float
    f: float


def f_measure(recall: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Harmonic mean of precision and recall; 0 where both are."""
    return _ratio(2 * recall * precision, recall + precision)


def curve(counts: Counts) -> Curve:
    """Precision and recall of the pixels of all images together, from counts (T,) or (N, T)."""
    recalled, drawn, correct, detected = (np.atleast_2d(column).sum(0) for column in counts)
    return Curve(_ratio(recalled, drawn), _ratio(correct, detected))


def optimum(thresholds: np.ndarray, curve: Curve) -> Optimum:
    """The best F-measure on the curve, joined by straight lines that are sampled at 100 points each."""
    share = np.linspace(0, 1, 100)
    columns = [np.asarray(column, float) for column in (thresholds, curve.recall, curve.precision)]
    lines = [
        (np.outer(column[:-1], 1 - share) + np.outer(column[1:], share)).ravel() if len(column) > 1 else column
        for column in columns
    ]
    f = f_measure(lines[1], lines[2])
    best = int(f.argmax())
    threshold, recall, precision = (float(line[best]) for line in lines)
    return Optimum(threshold, recall, precision, float(f[best]))


def image_optimum(counts: Counts) -> float:
    """OIS: the F-measure of the pixels of all images, each at its own best threshold. ``counts`` are (N, T)."""
    recall, precision = _ratio(counts.recalled, counts.drawn), _ratio(counts.correct, counts.detected)
    best = f_measure(recall, precision).argmax(1)[:, None]
    return float(curve(Counts(*(np.take_along_axis(column, best, 1) for column in counts))).f[0])


def average_precision(curve: Curve) -> float:
    """AP: precision at recall 0, .01, ..., 1 on the line through the curve's points, summed and times .01.

    Recalls that the curve does not reach, on either side, count as precision 0.
    """
    recall, first = np.unique(curve.recall, return_index=True)
    if len(recall) < 2:
        return 0.0
    return float(np.interp(np.arange(101) / 100, recall, curve.precision[first], left=0, right=0).sum() / 100)


def recall_at_half(curve: Curve) -> float:
    """R50: the greatest recall at which precision is at least .5, on lines between thresholds; 0 where it never is.

    Where precision falls as recall rises, this is recall at precision .5, or the greatest recall of all.
    """
    recall, above = curve.recall, curve.precision - 0.5
    crossed = np.flatnonzero(above[:-1] * above[1:] < 0)
    share = above[crossed] / (above[crossed] - above[crossed + 1])
    between = recall[crossed] + share * (recall[crossed + 1] - recall[crossed])
    return float(max([0.0, *recall[above >= 0], *between]))


def scores(thresholds: np.ndarray, counts: Counts) -> dict[str, float]:
    """``ods``, ``ois``, ``ap`` and ``r50``, from counts (N, T) of N images."""
    whole = curve(counts)
    return {
        "ods": optimum(thresholds, whole).f,
        "ois": image_optimum(counts),
        "ap": average_precision(whole),
        "r50": recall_at_half(whole),
    }


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)
