"""Paired tests over the same folds, corrected for the rows that folds share and for the number of methods."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.stats import t as student

from ldl.comparison.figures import direction

CONFIDENCE = 0.9
"""Of the paired t-tests, as in Peng et al. 2018."""


def p_value(ours: np.ndarray, other: np.ndarray, ratio: float | None = None) -> float:
    """Of a two-sided paired t-test over the same folds, (folds,) each; 1 where they are equal, NaN of a single one.

    Folds share training rows, so their differences are less apart than those of independent samples: with their sample
    variance s^2, that of their mean is taken as (1 / n + ratio) s^2 in place of s^2 / n (Nadeau & Bengio, Machine
    Learning 2003, the corrected resampled t-test).

    Args:
        ours: A measure of each of n folds.
        other: The same of another method.
        ratio: Tested rows for each row of the training part; by default that of the n folds of a cross-validation,
            1 / (n - 1). 0 is the plain test, of independent samples.
    """
    count = len(ours)
    if count < 2:
        return math.nan
    difference = ours - other
    if np.allclose(difference, 0, atol=1e-6):
        return 1.0
    if np.allclose(difference, difference[0]):
        return 0.0
    of_mean = (1 / count + (1 / (count - 1) if ratio is None else ratio)) * difference.var(ddof=1)
    return float(2 * student.sf(abs(difference.mean()) / math.sqrt(of_mean), count - 1))


def verdict(ours: np.ndarray, other: np.ndarray, measure: str, ratio: float | None = None) -> str:
    """``win``, ``tie`` or ``loss`` of the first, by :func:`p_value` alone."""
    if not p_value(ours, other, ratio) < 1 - CONFIDENCE:
        return "tie"
    return "win" if direction(measure) * (ours - other).mean() < 0 else "loss"


def holm(p: np.ndarray) -> np.ndarray:
    """p (tests,) adjusted for their number, so that one at most ``a`` is false with probability ``a`` at most.

    The lowest of n counts n times, the next n - 1 times, and none less than the one before (Holm 1979). NaN, of tests
    that could not be made, stays NaN and counts for nothing.
    """
    order = np.argsort(p, kind="stable")[: int(np.isfinite(p).sum())]
    adjusted = np.full(len(p), math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted


def best_of(folds: Mapping[str, np.ndarray], measure: str) -> str:
    """The method with the best mean over its folds, the first of several."""
    return min(folds, key=lambda name: direction(measure) * float(folds[name].mean()))


def against_best(folds: Mapping[str, np.ndarray], measure: str, ratio: float | None = None) -> dict[str, float]:
    """p of each method against the best, by :func:`p_value` and, since the best is compared with all, :func:`holm`.

    Args:
        folds: (folds,) of each method.
        measure: Which one they are of.
        ratio: As in :func:`p_value`.

    Returns:
        NaN of the best itself, of a single fold, and of methods with other numbers of folds than the best.
    """
    best = folds[best_of(folds, measure)]
    p = [math.nan if own is best or len(own) != len(best) else p_value(own, best, ratio) for own in folds.values()]
    return dict(zip(folds, holm(np.array(p)).tolist()))


def standard_error(values: np.ndarray) -> float:
    """Of the mean of (n,) values; NaN of a single one."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
