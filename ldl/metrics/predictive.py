"""How good predicted distributions over a line are, judged by the true values alone.

Arrays are numpy: ``prediction`` (n, C), ``value`` (n,) true values and ``axis`` (C,) rising values of the labels.
Everything is computed in float64 on rows scaled to sum 1.
"""

from __future__ import annotations

import numpy as np

from ldl.metrics.functional import KL_FLOOR

COVERAGES = (50, 80, 90, 95)
"""Per cent of the central intervals whose coverage is measured."""

CALIBRATION_LEVELS = np.arange(1, 20) / 20
"""Levels 0.05, 0.10, ..., 0.95 of the calibration error."""


def nearest(axis: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Number of the label nearest to every value, (n,) of int; halfway between two it is the lower one."""
    middles = (axis[1:] + axis[:-1]) / 2
    return np.searchsorted(middles, value, side="left")


def nll(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """-ln of the probability of the label nearest to the true value, raised to 1e-12 first; (n,), in [0, 27.7]."""
    chosen = np.take_along_axis(_simplex(prediction), nearest(axis, value)[:, None], 1)[:, 0]
    return -np.log(np.maximum(chosen, KL_FLOOR))


def crps(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Continuous ranked probability score E|X - y| - E|X - X'| / 2, exact; (n,), at least 0, in the labels' unit.

    X and X' are drawn from the predicted distribution. For a point mass at x it is |x - y|. Gneiting & Raftery,
    "Strictly proper scoring rules", JASA 2007.
    """
    p = _simplex(prediction)
    below = np.cumsum(p, 1)[:, :-1]
    # Half of E|X - X'| is the sum of F (1 - F) over the gaps between labels.
    spread = (below * (1 - below)) @ np.diff(axis)
    return (p * np.abs(axis - np.asarray(value, dtype=np.float64)[:, None])).sum(1) - spread


def pit(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Probability integral transform: the span of probability, (n, 2), that the true label takes.

    It reaches from the mass of all labels below the one nearest to the true value up to the same with that label's
    own mass. Over labels the transform is no number but this span: a number drawn uniformly from it would be uniform
    over calibrated predictions. See :func:`pit_share`.
    """
    p = _simplex(prediction)
    label = nearest(axis, value)[:, None]
    upper = np.minimum(np.take_along_axis(np.cumsum(p, 1), label, 1), 1.0)
    return np.hstack([np.maximum(upper - np.take_along_axis(p, label, 1), 0.0), upper])


def pit_share(spans: np.ndarray, level: float) -> np.ndarray:
    """Share of every span of :func:`pit` that lies at or below ``level``, (n,) in [0, 1].

    Its mean over rows is ``level`` for calibrated predictions, whatever the labels' spacing (Czado, Gneiting & Held,
    "Predictive model assessment for count data", Biometrics 2009). The middle of the span, which is often used
    instead, has that property only in the limit of fine labels.
    """
    lower, upper = spans.T
    width = upper - lower
    share = np.clip((level - lower) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    return np.where(width == 0, (lower <= level).astype(np.float64), share)


def coverage(spans: np.ndarray, percent: float) -> float:
    """Share of true values within the central interval that holds ``percent`` of the predicted mass, in [0, 1].

    A label on the edge of the interval counts with the share of its mass that lies inside.
    """
    outside = (1 - percent / 100) / 2
    return float(np.mean(pit_share(spans, 1 - outside) - pit_share(spans, outside)))


def reliability(spans: np.ndarray, levels: np.ndarray = CALIBRATION_LEVELS) -> np.ndarray:
    """Observed share of true values at or below every predicted quantile of ``levels``, same shape."""
    return np.array([pit_share(spans, level).mean() for level in levels])


def calibration_error(spans: np.ndarray) -> float:
    """Mean absolute difference of observed and nominal shares over :data:`CALIBRATION_LEVELS`, in [0, 0.5].

    After Kuleshov et al., "Accurate uncertainties for deep learning using calibrated regression", ICML 2018.
    """
    return float(np.abs(reliability(spans) - CALIBRATION_LEVELS).mean())


def _simplex(prediction: np.ndarray) -> np.ndarray:
    # Rows come in single precision or less, where their sums are off by more than the scores can bear.
    p = np.asarray(prediction, dtype=np.float64)
    return p / p.sum(1, keepdims=True)
