"""Decision stumps: the best threshold of every feature, in one pass over its sorted values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import log, sqrt
from typing import Literal, NamedTuple

import numpy as np

from ldl.methods.forest.compiled import compiled

SHARE = 2**18
"""Values that a thread looks at, at least."""

Cut = Literal["error", "bound"]


class Stump(NamedTuple):
    """h(x) is ``high`` where x[feature] > threshold, else ``low``."""

    feature: int
    threshold: float
    low: float
    high: float

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Outputs (N,) of rows (N, F), float64."""
        return np.where(rows[:, self.feature] > np.float32(self.threshold), self.high, self.low)


def presort(rows: np.ndarray) -> np.ndarray:
    """Rows (N, F) in the order of every feature, (F, N) int32; ~i instead of i says that no cut may follow row i.

    Between equal values there is no threshold, and none is behind the last row.
    """
    order = np.empty(rows.shape[::-1], np.int32)
    numbers = np.arange(len(rows), dtype=np.uint64)
    for feature in range(rows.shape[1]):
        # A value and its row as one integer: much faster to sort than by reference. -0 becomes 0.
        bits = (rows[:, feature] + np.float32(0)).view(np.uint32)
        keys = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64) << np.uint64(32) | numbers
        keys.sort()
        by_value = (keys & np.uint64(2**32 - 1)).astype(np.int32)
        values = keys >> np.uint64(32)
        tied = np.append(values[1:] == values[:-1], True)
        order[feature] = np.where(tied, ~by_value, by_value)
    return order


def best_stump(
    rows: np.ndarray, order: np.ndarray, weights: np.ndarray, features: np.ndarray, real: bool, cut: Cut, prior: float,
    pool: ThreadPoolExecutor | None = None, threads: int = 1,
) -> Stump | None:  # fmt: skip
    """The stump that fits the signs of ``weights`` best; None where no feature varies.

    Discrete stumps say -1 or 1 and have the least weighted error. Real ones say half the log odds of the weights on
    each side. They too have the least weighted error, or with ``bound`` the least sum over both sides of sqrt(W+ W-),
    the bound on the error that goes with such outputs (Schapire & Singer 1999).
    Of equal ones the first stays, by feature, then by threshold.

    Args:
        rows: (N, F) float32.
        order: What :func:`presort` made of them.
        weights: (N,) signed, float64: the response that h should follow (Friedman 2001).
        features: Which features are tried, rising.
        real: Real-valued outputs instead of -1 and 1.
        cut: What the cut of a real stump is best at: ``error`` or ``bound``.
        prior: Weight that smoothes log odds, as a share of all weight, above 0.
        pool: Threads that share the features; None does all here.
        threads: How many there are.
    """
    search = _least_bound if real and cut == "bound" else _least_error
    # A thread that is woken for less work costs more than it does.
    parts = np.array_split(features, min(threads, 1 + len(features) * len(rows) // SHARE))
    if pool is None or len(parts) == 1:
        found = [search(order, weights, features)]
    else:
        found = list(pool.map(lambda part: search(order, weights, part), parts))
    _, feature, last = max(found, key=lambda item: item[0])
    if feature < 0:
        return None
    by_value = order[feature]
    by_value = np.where(by_value < 0, ~by_value, by_value)
    below, above = rows[by_value[last], feature], rows[by_value[last + 1], feature]
    middle = np.float32(below / 2 + above / 2)
    left = weights[by_value[: last + 1]]
    right = weights[by_value[last + 1 :]]
    low, high = _outputs(left, right, real, prior * np.abs(weights).sum())
    return Stump(int(feature), float(middle if below <= middle < above else below), low, high)


def _outputs(left: np.ndarray, right: np.ndarray, real: bool, prior: float) -> tuple[float, float]:
    if not real:
        sign = 1.0 if right.sum() >= left.sum() else -1.0
        return -sign, sign
    low, high = (0.5 * log((part[part > 0].sum() + prior) / (-part[part < 0].sum() + prior)) for part in (left, right))
    return low, high


@compiled
def _least_error(order: np.ndarray, weights: np.ndarray, features: np.ndarray) -> tuple[float, int, int]:
    """The cut with the greatest |sum right - sum left|: that sum, the feature (-1 for none) and the position."""
    total = weights.sum()
    best, feature, cut = 0.0, -1, -1
    for f in features:
        left = 0.0
        for position in range(order.shape[1]):
            row = order[f, position]
            if row < 0:
                left += weights[~row]
                continue
            left += weights[row]
            edge = abs(total - 2 * left)
            if edge > best:
                best, feature, cut = edge, f, position
    return best, feature, cut


@compiled
def _least_bound(order: np.ndarray, weights: np.ndarray, features: np.ndarray) -> tuple[float, int, int]:
    """The cut with the least sum over sides of sqrt(W+ W-): its negative, the feature (-1 for none), the position."""
    whole, total = np.abs(weights).sum(), weights.sum()
    best, feature, cut = np.inf, -1, -1
    for f in features:
        size, left = 0.0, 0.0
        for position in range(order.shape[1]):
            row = order[f, position]
            weight = weights[row if row >= 0 else ~row]
            size += abs(weight)
            left += weight
            if row < 0:
                continue
            # 4 W+ W- of both sides: the square of the sum of their roots is no less than their sum, found without any.
            a = max((size - left) * (size + left), 0.0)
            b = max((whole - size - total + left) * (whole - size + total - left), 0.0)
            if a + b < best:
                bound = a + b + 2 * sqrt(a) * sqrt(b)
                if bound < best:
                    best, feature, cut = bound, f, position
    return -best, feature, cut
