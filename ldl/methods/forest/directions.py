"""Oblique splits of a node that mind rare labels (Huang, Loy & Tang 2016, section III-B)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldl.methods.forest.least_squares import Changing, Direction, ridge
from ldl.methods.forest.relabel import two_means

Missed = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Of scores (n,): which rows lose, and the score at which each would not."""
ROUNDS, HALVINGS = 100, 40
"""At most; few machines need more than ten rounds, and few steps are halved."""
FEW = 2**14
"""Entries of a node's rows, of which sums cost less than to mind what changes."""
PRECISION = 1e-12
"""Share of the loss below which a gain ends the rounds."""


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
    regression, which has a closed form.

    Args:
        rows: (n, D).
        values: (n,).
        costs: (n,) above 0.
        penalty: C.
        epsilon: Half the width of the tube.
        gram: (n, n) scalar products of the rows, where they are known.
    """
    if epsilon == 0:
        return ridge(rows, values, costs, penalty, gram)

    def missed(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        short = values - scores
        return np.abs(short) > epsilon, values - np.copysign(epsilon, short)

    return _newton(rows, costs, penalty, missed)


def separate(rows: np.ndarray, cluster: np.ndarray, costs: np.ndarray, penalty: float) -> Direction:
    """Linear support vector machine, squared hinge loss, between a node's two clusters (Eq. 9).

    minimise ||w||^2 + penalty * sum of costs * max(0, 1 - y (w.x + b))^2 with y = 1 in cluster 1, whose scores are
    above 0, and -1 in cluster 0; ``cluster`` (n,) is 0 or 1, both occur. The rest as for :func:`regress`.
    """
    side = np.where(cluster, 1.0, -1.0)
    return _newton(rows, costs, penalty, lambda scores: (side * scores < 1, side))


def _newton(rows: np.ndarray, costs: np.ndarray, penalty: float, missed: Missed) -> Direction:
    """Least squares on the rows that miss their aim, until these are the same (Keerthi & DeCoste 2005).

    The loss is quadratic as long as the same rows miss, so that a full step solves it; steps that raise the loss are
    halved.
    """
    weights, bias, scores = np.zeros(rows.shape[1]), 0.0, np.zeros(len(rows))
    solve = Changing(rows, costs, penalty).solve if rows.size > FEW else _afresh(rows, costs, penalty)
    loss, own, aims = _loss(weights, scores, costs, penalty, missed)
    for _ in range(ROUNDS):
        to = (np.zeros_like(weights), bias)
        if own.any():
            to = solve(own, aims)
        turn, shift = to[0] - weights, to[1] - bias
        change = rows @ turn + shift
        step, before = 1.0, loss
        for _ in range(HALVINGS):
            now = weights + step * turn, scores + step * change
            loss, own, aims = _loss(*now, costs, penalty, missed)
            if loss <= before:
                break
            step /= 2
        (weights, scores), bias = now, bias + step * shift
        if before - loss <= PRECISION * before:
            break
    return weights, bias


def _afresh(rows: np.ndarray, costs: np.ndarray, penalty: float) -> Callable[[np.ndarray, np.ndarray], Direction]:
    return lambda own, aims: ridge(rows[own], aims[own], costs[own], penalty)


def _loss(
    weights: np.ndarray, scores: np.ndarray, costs: np.ndarray, penalty: float, missed: Missed
) -> tuple[float, np.ndarray, np.ndarray]:
    own, aims = missed(scores)
    return weights @ weights + penalty * costs[own] @ np.square((aims - scores)[own]), own, aims


def halve(codes: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """2-means of the codes (n, c) of a node, which are not all equal: cluster 0 or 1 of every row."""
    count = len(codes)
    own, cluster = np.arange(count, dtype=np.int32), np.empty(count, np.uint8)
    codes = np.ascontiguousarray(codes, np.float32)
    two_means(codes, own, draws.astype(np.int32), own, 0, count, np.empty_like(codes), cluster)
    return cluster
