"""Weighted ridge regression of a node's rows, with an intercept that is not penalised.

minimise ||w||^2 + penalty * sum of costs * (value - w.x - b)^2
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

Direction = tuple[np.ndarray, float]
"""Weights (D,) and bias; rows whose score is below the node's threshold go left."""


def ridge(
    rows: np.ndarray, values: np.ndarray, costs: np.ndarray, penalty: float, gram: np.ndarray | None = None
) -> Direction:
    """The best direction, in the smaller of its two forms.

    Args:
        rows: (n, D).
        values: (n,).
        costs: (n,) above 0.
        penalty: C.
        gram: (n, n) scalar products of the rows, where they are known.
    """
    shares, roots = costs / costs.sum(), np.sqrt(costs)
    centre, middle = shares @ rows, shares @ values
    weights = _centred(rows, values - middle, shares, roots, 1 / penalty, gram)
    return weights, middle - centre @ weights


class Changing:
    """The same of some of the rows, of which few are others from one call to the next.

    Rows (n, D) that are at least as many as their features have their products summed, and sums lose and gain what
    changes; fewer have all their scalar products at hand. ``costs`` and ``penalty`` are those of :func:`ridge`.
    """

    def __init__(self, rows: np.ndarray, costs: np.ndarray, penalty: float) -> None:
        self._rows, self._costs, self._penalty = rows, costs, penalty
        self._summed = np.zeros(len(rows), bool)
        if len(rows) < rows.shape[1]:
            self._gram = rows @ rows.T
            return
        # Counted from the rows' mean, so that the sums' own mean takes little from them.
        self._origin, self._roots = rows.mean(0), np.sqrt(costs)
        self._scaled = np.column_stack([rows - self._origin, np.ones(len(rows))]) * self._roots[:, None]
        self._sums = np.zeros((rows.shape[1] + 1,) * 2)

    def solve(self, own: np.ndarray, values: np.ndarray) -> Direction:
        """The best direction for the rows where ``own`` (n,) is true, one at least, and all rows' ``values`` (n,)."""
        if len(own) < self._rows.shape[1]:
            gram = self._gram[np.ix_(own, own)]
            return ridge(self._rows[own], values[own], self._costs[own], self._penalty, gram)
        self._sum(own)
        total, mean = self._sums[-1, -1], self._sums[-1, :-1] / self._sums[-1, -1]
        right = (own * self._roots * values) @ self._scaled
        gram = self._sums[:-1, :-1] - total * mean[:, None] * mean
        weights = _solve(gram, right[:-1] - right[-1] * mean, 1 / self._penalty)
        return weights, right[-1] / total - (self._origin + mean) @ weights

    def _sum(self, own: np.ndarray) -> None:
        joined, left = own & ~self._summed, self._summed & ~own
        if 2 * (np.count_nonzero(joined) + np.count_nonzero(left)) > np.count_nonzero(own):
            self._sums[:] = 0.0
            joined, left = own, np.zeros_like(own)
        for changed, sign in ((joined, 1.0), (left, -1.0)):
            if changed.any():
                part = self._scaled[changed]
                self._sums += sign * (part.T @ part)
        self._summed = own


def _centred(
    rows: np.ndarray, values: np.ndarray, shares: np.ndarray, roots: np.ndarray, least: float, gram: np.ndarray | None
) -> np.ndarray:
    """Of rows counted from their mean by ``shares``, each times its root."""
    if len(rows) >= rows.shape[1]:
        rows = (rows - shares @ rows) * roots[:, None]
        return _solve(rows.T @ rows, rows.T @ (values * roots), least)
    gram = rows @ rows.T if gram is None else gram
    means = gram @ shares
    gram = (gram - means[:, None] - means + shares @ means) * roots[:, None] * roots
    dual = _solve(gram, values * roots, least) * roots
    return dual @ rows - dual.sum() * (shares @ rows)


def _solve(gram: np.ndarray, right: np.ndarray, least: float) -> np.ndarray:
    """Of a positive definite matrix, to whose diagonal ``least`` is added in place."""
    gram.flat[:: len(gram) + 1] += least
    # LAPACK's own: of so small a matrix, scipy.linalg.solve takes most of its time for what it checks.
    _, solution, failed = dposv(gram, right, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError(f"a node's least squares are singular: ridge {least:g} is too small for its rows")
    return solution
