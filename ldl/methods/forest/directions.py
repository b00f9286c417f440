"""Directions of oblique splits with costs that weigh rare labels (Huang, Loy & Tang 2016, section III-B).

:func:`regress` and :func:`separate` are a linear SVR and SVM with squared losses and an intercept that is not
penalised. Their Newton steps are weighted ridge regressions:
minimise ||w||^2 + penalty * sum of costs * (value - w.x - b)^2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dposv

from ldl.methods.forest.cluster_splits import two_means

Direction = tuple[np.ndarray, float]
"""Weights (D,) and bias; rows with a score below the threshold of the node go left."""
Missed = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Maps scores (n,) to the rows that have a loss, and the score at which each would have none."""
NEWTON_ROUNDS, HALVINGS = 100, 40
"""Most Newton rounds, and most halvings of a step; few machines need more than ten rounds."""
FRESH_SUM_ENTRIES = 2**14
"""Entries of a node's rows up to which fresh sums cost less than updates."""
PRECISION = 1e-12
"""Share of the loss below which a gain ends the rounds."""


def label_costs(labels: np.ndarray, draws: np.ndarray, cap: float) -> np.ndarray:
    """Return the costs (n,) f(p) = (1 - p) / p, at most ``cap``, of rows whose label has the share p of the draws.

    Costs are divided by their mean over the draws, so that the penalty has the same meaning in every node. A node with
    one label, where f is 0, has equal costs, and so has every node with a ``cap`` of 0.

    Args:
        labels: (n,), any numbers.
        draws: (n,), how often each row was drawn.
        cap: The largest cost.
    """
    codes = np.unique(labels, return_inverse=True)[1]
    share = (np.bincount(codes, draws) / draws.sum())[codes]
    cost = np.minimum((1 - share) / share, cap)
    mean = cost @ draws / draws.sum()
    return cost / mean if mean > 0 else np.ones(len(labels))


def regress(
    rows: np.ndarray, values: np.ndarray, costs: np.ndarray, penalty: float, epsilon: float,
    gram: np.ndarray | None = None,
) -> Direction:  # fmt: skip
    """Linear support vector regression with the squared epsilon-insensitive loss (Eq. 10).

    minimise ||w||^2 + penalty * sum of costs * max(0, |value - w.x - b| - epsilon)^2. With an epsilon of 0 this is
    ridge regression, which has a closed form.

    Args:
        rows: (n, D).
        values: (n,).
        costs: (n,) above 0.
        penalty: C.
        epsilon: Half the width of the tube.
        gram: (n, n) scalar products of the rows, if they are known.
    """
    if epsilon == 0:
        return ridge(rows, values, costs, penalty, gram)

    def missed(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        short = values - scores
        return np.abs(short) > epsilon, values - np.copysign(epsilon, short)

    return _newton(rows, costs, penalty, missed)


def separate(rows: np.ndarray, cluster: np.ndarray, costs: np.ndarray, penalty: float) -> Direction:
    """Linear support vector machine with the squared hinge loss between the two clusters of a node (Eq. 9).

    minimise ||w||^2 + penalty * sum of costs * max(0, 1 - y (w.x + b))^2 with y = 1 in cluster 1 and -1 in cluster 0.
    ``cluster`` (n,) is 0 or 1, and both occur. For the other arguments, see :func:`regress`.
    """
    side = np.where(cluster, 1.0, -1.0)
    return _newton(rows, costs, penalty, lambda scores: (side * scores < 1, side))


def halve(codes: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Cluster the codes (n, c) of a node, not all equal, by 2-means: return cluster 0 or 1 of every row."""
    count = len(codes)
    rows, cluster = np.arange(count, dtype=np.int32), np.empty(count, np.uint8)
    codes = np.ascontiguousarray(codes, np.float32)
    two_means(codes, rows, draws.astype(np.int32), rows, 0, count, np.empty_like(codes), cluster)
    return cluster


def _newton(rows: np.ndarray, costs: np.ndarray, penalty: float, missed: Missed) -> Direction:
    """Solve least squares on the rows with a loss until these stay the same (Keerthi & DeCoste 2005).

    The loss is quadratic while these rows stay the same, so a full step solves it; steps that raise it are halved.
    """
    weights, bias, scores = np.zeros(rows.shape[1]), 0.0, np.zeros(len(rows))
    solve = Changing(rows, costs, penalty).solve if rows.size > FRESH_SUM_ENTRIES else _afresh(rows, costs, penalty)
    loss, active, aims = _loss(weights, scores, costs, penalty, missed)
    for _ in range(NEWTON_ROUNDS):
        to = (np.zeros_like(weights), bias)
        if active.any():
            to = solve(active, aims)
        turn, shift = to[0] - weights, to[1] - bias
        change = rows @ turn + shift
        step, before = 1.0, loss
        for _ in range(HALVINGS):
            now = weights + step * turn, scores + step * change
            loss, active, aims = _loss(*now, costs, penalty, missed)
            if loss <= before:
                break
            step /= 2
        (weights, scores), bias = now, bias + step * shift
        if before - loss <= PRECISION * before:
            break
    return weights, bias


def _afresh(rows: np.ndarray, costs: np.ndarray, penalty: float) -> Callable[[np.ndarray, np.ndarray], Direction]:
    return lambda active, aims: ridge(rows[active], aims[active], costs[active], penalty)


def _loss(
    weights: np.ndarray, scores: np.ndarray, costs: np.ndarray, penalty: float, missed: Missed
) -> tuple[float, np.ndarray, np.ndarray]:
    active, aims = missed(scores)
    return weights @ weights + penalty * costs[active] @ np.square((aims - scores)[active]), active, aims


def ridge(
    rows: np.ndarray, values: np.ndarray, costs: np.ndarray, penalty: float, gram: np.ndarray | None = None
) -> Direction:
    """Weighted ridge regression, in the smaller of its two forms. For the arguments, see :func:`regress`."""
    shares, roots = costs / costs.sum(), np.sqrt(costs)
    centre, middle = shares @ rows, shares @ values
    weights = _centred(rows, values - middle, shares, roots, 1 / penalty, gram)
    return weights, middle - centre @ weights


class Changing:
    """:func:`ridge` for changing subsets of the rows (n, D), of which few rows differ from one call to the next.

    With at least as many rows as features, the sums of products are updated by the rows that enter or leave. With
    fewer rows, all scalar products are computed once.
    """

    def __init__(self, rows: np.ndarray, costs: np.ndarray, penalty: float) -> None:
        self._rows, self._costs, self._penalty = rows, costs, penalty
        self._summed = np.zeros(len(rows), bool)
        if len(rows) < rows.shape[1]:
            self._gram = rows @ rows.T
            return
        # Relative to the mean of all rows, so that subtracting the mean of a subset loses little precision.
        self._origin, self._roots = rows.mean(0), np.sqrt(costs)
        self._scaled = np.column_stack([rows - self._origin, np.ones(len(rows))]) * self._roots[:, None]
        self._sums = np.zeros((rows.shape[1] + 1,) * 2)

    def solve(self, active: np.ndarray, values: np.ndarray) -> Direction:
        """Return the direction for the ``active`` rows (n,) bool, at least one, and the ``values`` (n,) of all."""
        if len(active) < self._rows.shape[1]:
            gram = self._gram[np.ix_(active, active)]
            return ridge(self._rows[active], values[active], self._costs[active], self._penalty, gram)
        self._sum(active)
        total, mean = self._sums[-1, -1], self._sums[-1, :-1] / self._sums[-1, -1]
        right = (active * self._roots * values) @ self._scaled
        gram = self._sums[:-1, :-1] - total * mean[:, None] * mean
        weights = _solve(gram, right[:-1] - right[-1] * mean, 1 / self._penalty)
        return weights, right[-1] / total - (self._origin + mean) @ weights

    def _sum(self, active: np.ndarray) -> None:
        joined, left = active & ~self._summed, self._summed & ~active
        if 2 * (np.count_nonzero(joined) + np.count_nonzero(left)) > np.count_nonzero(active):
            self._sums[:] = 0.0
            joined, left = active, np.zeros_like(active)
        for changed, sign in ((joined, 1.0), (left, -1.0)):
            if changed.any():
                block = self._scaled[changed]
                self._sums += sign * (block.T @ block)
        self._summed = active


def _centred(
    rows: np.ndarray, values: np.ndarray, shares: np.ndarray, roots: np.ndarray, least: float, gram: np.ndarray | None
) -> np.ndarray:
    """Return the weights for rows relative to their mean by ``shares``, each times its root."""
    if len(rows) >= rows.shape[1]:
        rows = (rows - shares @ rows) * roots[:, None]
        return _solve(rows.T @ rows, rows.T @ (values * roots), least)
    gram = rows @ rows.T if gram is None else gram
    means = gram @ shares
    gram = (gram - means[:, None] - means + shares @ means) * roots[:, None] * roots
    dual = _solve(gram, values * roots, least) * roots
    return dual @ rows - dual.sum() * (shares @ rows)


def _solve(gram: np.ndarray, right: np.ndarray, least: float) -> np.ndarray:
    """Solve a positive definite system, after adding ``least`` to its diagonal in place."""
    gram.flat[:: len(gram) + 1] += least
    # LAPACK directly: for small matrices, scipy.linalg.solve spends most of its time on checks.
    _, solution, failed = dposv(gram, right, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError(f"a node's least squares are singular: ridge {least:g} is too small for its rows")
    return solution
