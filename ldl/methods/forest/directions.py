"""Oblique splits of a node that mind rare labels (Huang, Loy & Tang 2016, section III-B)."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, LinearSVR

from ldl.methods.forest.relabel import two_means

Direction = tuple[np.ndarray, float]
"""Weights (D,) and bias; rows whose score is below the node's threshold go left."""


def label_costs(labels: np.ndarray, draws: np.ndarray, cap: float) -> np.ndarray:
    """Costs f(p) = (1 - p) / p, at most ``cap``, of rows whose label makes up the share p of the node's draws, (n,).

    They are divided by their mean over the draws, so that the penalty of the weights means the same in every node.
    A node of one label, where f is 0, has equal costs; so has every node where ``cap`` is 0. ``labels`` (n,) are any
    numbers, ``draws`` (n,) say how often each row was drawn.
    """
    places = np.unique(labels, return_inverse=True)[1]
    share = (np.bincount(places, draws) / draws.sum())[places]
    cost = np.minimum((1 - share) / share, cap)
    mean = cost @ draws / draws.sum()
    return cost / mean if mean > 0 else np.ones(len(labels))


def regress(
    rows: np.ndarray,
    values: np.ndarray,
    costs: np.ndarray,
    penalty: float,
    epsilon: float,
    gram: np.ndarray | None = None,
) -> Direction:
    """Linear support vector regression, squared epsilon-insensitive loss, intercept not penalised (Eq. 10).

    minimise ||w||^2 + penalty * sum of costs * max(0, |value - w.x - b| - epsilon)^2. Without a tube it is ridge
    regression, which has a closed form; with one it is liblinear's.

    Args:
        rows: (n, D).
        values: (n,).
        costs: (n,) at least 0.
        penalty: C.
        epsilon: Half the width of the tube.
        gram: (n, n) scalar products of the rows, where they are known.
    """
    total = costs.sum()
    shares = costs / total
    centre, middle = shares @ rows, shares @ values
    if epsilon > 0:
        # liblinear halves ||w||^2, and penalises the intercept, for which centred rows leave little.
        svr = LinearSVR(
            C=penalty / 2, epsilon=epsilon, loss="squared_epsilon_insensitive", dual=False, intercept_scaling=10.0
        )
        _fit_quietly(svr, rows - centre, values - middle, costs)
        weights, bias = svr.coef_, float(np.ravel(svr.intercept_)[0])
    else:
        weights, bias = _ridge(rows, values - middle, shares, np.sqrt(costs), 1 / penalty, gram), 0.0
    return weights, middle + bias - centre @ weights


def _fit_quietly(model: LinearSVR | LinearSVC, rows: np.ndarray, target: np.ndarray, costs: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, target, costs)


def _ridge(
    rows: np.ndarray, values: np.ndarray, shares: np.ndarray, roots: np.ndarray, ridge: float, gram: np.ndarray | None
) -> np.ndarray:
    """Of rows counted from their mean by ``shares``, each times its root; in the smaller of the two forms."""
    if len(rows) >= rows.shape[1]:
        rows = (rows - shares @ rows) * roots[:, None]
        gram = rows.T @ rows
        gram[np.diag_indices_from(gram)] += ridge
        return solve(gram, rows.T @ (values * roots), assume_a="pos", check_finite=False)
    gram = rows @ rows.T if gram is None else gram
    means = gram @ shares
    gram = (gram - means[:, None] - means + shares @ means) * roots[:, None] * roots
    gram[np.diag_indices_from(gram)] += ridge
    dual = solve(gram, values * roots, assume_a="pos", check_finite=False) * roots
    return dual @ rows - dual.sum() * (shares @ rows)


def halve(codes: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """2-means of the codes (n, c) of a node, which are not all equal: cluster 0 or 1 of every row."""
    count = len(codes)
    own, cluster = np.arange(count, dtype=np.int32), np.empty(count, np.uint8)
    codes = np.ascontiguousarray(codes, np.float32)
    two_means(codes, own, draws.astype(np.int32), own, 0, count, np.empty_like(codes), cluster)
    return cluster


def separate(rows: np.ndarray, cluster: np.ndarray, costs: np.ndarray, penalty: float) -> Direction:
    """Linear support vector machine, squared hinge loss, between a node's two clusters (Eq. 9), by liblinear.

    ``cluster`` (n,) is 0 or 1, and scores of 1 are above 0; the rest as for :func:`regress`.
    """
    centre = costs @ rows / costs.sum()
    svc = LinearSVC(C=penalty / 2, loss="squared_hinge", dual=False)
    _fit_quietly(svc, rows - centre, cluster, costs)
    weights = svc.coef_[0]
    return weights, float(svc.intercept_[0] - centre @ weights)
