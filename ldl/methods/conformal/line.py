"""Central intervals of distributions over a line, and the level at which they just hold a value.

Each label's probability is spread evenly from halfway to the label below up to halfway to the label above; the first
and the last label reach as far outwards as inwards. That makes the distribution function F continuous. Arrays are
numpy: ``prediction`` (N, C), ``axis`` (C,) rising values of the labels; all is computed in float64.
"""

from __future__ import annotations

import numpy as np

LEAST = 1e-9
"""A probability below this is taken for 0: single precision cannot tell, and tails would have no end."""

HAIR = 1e-6
"""Added to a level, so that rounding does not lose a value that an interval just holds."""


def line_scores(prediction: np.ndarray, value: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """How far out a value lies in its predicted distribution: the level of the central interval that just holds it.

    It is |2 F(y) - 1|, as in distributional conformal prediction (Chernozhukov, Wuthrich & Zhu, PNAS 2021). Where F is
    0 or 1 that would tie; a value beyond all predicted mass has 1 plus its distance from there, as a share of the
    range of the labels.

    Args:
        prediction: (N, C), rows of any positive sum.
        value: (N,).
        axis: (C,).

    Returns:
        (N,), at least 0.
    """
    p, edges = _spread(prediction, axis)
    value = np.asarray(value, dtype=np.float64)
    low, high = _tail(p, edges, value), _tail(p[:, ::-1], -edges[::-1], -value)
    start, end = _start(p, edges), -_start(p[:, ::-1], -edges[::-1])
    beyond = np.maximum(np.maximum(start - value, value - end), 0.0)
    return 1 - 2 * np.minimum(low, high).clip(0, 0.5) + beyond / _range(axis)


def line_intervals(prediction: np.ndarray, axis: np.ndarray, score: float | np.ndarray) -> np.ndarray:
    """All values whose score is at most the given one: the central interval of this level, and more of one above 1.

    Args:
        prediction: (N, C), rows of any positive sum.
        axis: (C,).
        score: A number, or several (M,), each at least 0 and maybe infinite.

    Returns:
        Lower and upper ends within the labels' range, (N, 2), or (N, M, 2) of several scores.
    """
    p, edges = _spread(prediction, axis)
    scores = np.atleast_1d(np.asarray(score, dtype=np.float64)) + HAIR
    tail = np.maximum((1 - scores) / 2, 0.0)
    more = np.maximum(scores - 1, 0.0) * _range(axis)
    lower = _quantiles(p, edges, tail) - more
    upper = more - _quantiles(p[:, ::-1], -edges[::-1], tail)
    found = np.stack([lower, upper], -1).clip(axis[0], axis[-1])
    return found if np.ndim(score) else found[:, 0]


def _spread(prediction: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (N, C) that sum to 1, and the ends of the labels' cells (C + 1,)."""
    p = np.asarray(prediction, dtype=np.float64)
    p = p / p.sum(1, keepdims=True)
    p = np.where(p < LEAST, 0.0, p)
    axis = np.asarray(axis, dtype=np.float64)
    middles = (axis[1:] + axis[:-1]) / 2
    first, last = (2 * axis[0] - middles[0], 2 * axis[-1] - middles[-1]) if len(middles) else axis + [-0.5, 0.5]
    return p / p.sum(1, keepdims=True), np.concatenate([[first], middles, [last]])


def _range(axis: np.ndarray) -> float:
    return float(axis[-1] - axis[0]) or 1.0


def _start(p: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Where the mass begins, (N,)."""
    return edges[(p > 0).argmax(1)]


def _tail(p: np.ndarray, edges: np.ndarray, value: np.ndarray) -> np.ndarray:
    """F(value), (N,)."""
    cell = (np.searchsorted(edges, value, side="right") - 1).clip(0, p.shape[1] - 1)
    share = ((value - edges[cell]) / np.diff(edges)[cell]).clip(0, 1)
    rows = np.arange(len(p))
    return p.cumsum(1)[rows, cell] - (1 - share) * p[rows, cell]


def _quantiles(p: np.ndarray, edges: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """The lowest values with F at least ``tail`` (M,), each in [0, 1/2]; of 0 where the mass begins. (N, M)."""
    total = p.cumsum(1)
    # A binary search in all rows at once.
    low, high = (np.zeros((len(p), len(tail)), dtype=np.int64) for _ in range(2))
    high += p.shape[1] - 1
    while (low < high).any():
        middle = (low + high) // 2
        short = np.take_along_axis(total, middle, 1) < tail
        low, high = np.where(short, middle + 1, low), np.where(short, high, middle)
    cell = np.maximum(low, (p > 0).argmax(1)[:, None])
    own = np.take_along_axis(p, cell, 1)
    below = np.take_along_axis(total, cell, 1) - own
    share = ((tail - below) / np.where(own > 0, own, 1.0)).clip(0, 1)
    return edges[cell] + share * np.diff(edges)[cell]
