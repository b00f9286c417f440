"""Maximum entropy models of label distributions by L-BFGS, and how strongly to penalise their weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.decomposition import PCA

from ldl.progress import track
from ldl.protocols import kfold

PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
"""Tried from the strongest on, each from where the one before it ended."""
WORSE = 1.01
"""Times the lowest cross-entropy: where none weaker is tried. Where features say little, strong ones hardly differ."""
ROUGH = 1e-4
"""Tolerance that is enough for comparing them."""
FOLDS, SEED = 5, 0
"""Inner folds, and what shuffles them: the same rows are always cut alike."""
LEAST = 1e-3
"""Curvature of the loss in a label's scores that a label without mass is taken to have."""


def principal_axes(rows: np.ndarray) -> PCA:
    """Axes of (N, F) float64 rows, not all equal, along which features do not vary together: min(N, F) of them.

    Turning rows leaves the squared norm of weights as it is, and so the minimum of :func:`fit_max_ent` where there
    is a penalty; without one it is not unique, and stopping early ends elsewhere.
    """
    return PCA(svd_solver="covariance_eigh" if rows.shape[1] <= len(rows) else "full").fit(rows)


def along_features(weights: np.ndarray, axes: PCA) -> np.ndarray:
    """Weights (C, F + 1) of rows whose weights after ``axes.transform`` are (C, A + 1)."""
    own = weights[:, :-1] @ axes.components_
    return np.concatenate([own, weights[:, -1:] - (own @ axes.mean_)[:, None]], 1)


def fit_max_ent(
    rows: np.ndarray,
    target: np.ndarray,
    l2: float,
    iterations: int,
    tolerance: float,
    variance: np.ndarray | None = None,
    start: np.ndarray | None = None,
    step: Callable[[], object] = lambda: None,
) -> np.ndarray:
    """The weights (C, F + 1), biases last, of :class:`ldl.heads.max_ent.MaxEnt`, in float64.

    Args:
        rows: (N, F) float64.
        target: (N, C) float64.
        l2: Weight of half the squared norm of the weights without the biases.
        iterations: At most so many.
        tolerance: Largest entry of the gradient at which it stops.
        variance: (F,), of features that do not vary together, as along :func:`principal_axes`. L-BFGS then sees
            weights in units of the diagonal of the Hessian that the best biases alone have, in which the loss curves
            about alike in all directions, and needs a fraction of the steps. None leaves units as they are.
        start: Weights to start from; None starts from zero.
        step: Is called after every iteration.
    """
    shape = (target.shape[1], rows.shape[1] + 1)
    units = np.ones(shape)
    if variance is not None:
        mean = target.mean(0)
        curvature = np.maximum(mean * (1 - mean / mean.sum()), LEAST)[:, None]
        units = 1 / np.sqrt(np.concatenate([curvature * variance + l2, curvature], 1))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        both = flat.reshape(shape) * units
        logs = log_softmax(rows @ both[:, :-1].T + both[:, -1], axis=1)
        difference = (np.exp(logs) * target.sum(1, keepdims=True) - target) / len(rows)
        gradient = np.concatenate([difference.T @ rows + l2 * both[:, :-1], difference.sum(0)[:, None]], 1)
        cross_entropy = -(target * logs).sum() / len(rows)
        return cross_entropy + l2 / 2 * float((both[:, :-1] ** 2).sum()), (gradient * units).ravel()

    found = minimize(
        loss, np.zeros(units.size) if start is None else (start / units).ravel(), jac=True, method="L-BFGS-B",
        callback=lambda _: step(),
        options={"maxiter": iterations, "gtol": tolerance, "ftol": 0.0, "maxfun": 20 * iterations},
    )  # fmt: skip
    weights: np.ndarray = found.x.reshape(shape) * units
    return weights


def choose_l2(
    rows: np.ndarray,
    target: np.ndarray,
    iterations: int,
    tolerance: float,
    groups: np.ndarray | None = None,
    variance: np.ndarray | None = None,
    shows_progress: bool = False,
) -> float:
    """The one of :data:`PENALTIES` with the smallest mean KL divergence on rows left out, in nats a row.

    Args:
        rows: (N, F) float64.
        target: (N, C) float64.
        iterations: At most so many for a fit.
        tolerance, variance: As for :func:`fit_max_ent`.
        groups: (N,), of rows that are left out together; None leaves single rows out.
        shows_progress: Whether to draw a bar.

    Returns:
        The strongest where there is but one row or group, so that none can be left out.
    """
    units = len(rows) if groups is None else len(np.unique(groups))
    folds = min(FOLDS, units)
    if folds < 2:
        return PENALTIES[0]
    cuts = [kfold(len(rows), folds, fold, SEED, groups=groups) for fold in range(folds)]
    weights: list[np.ndarray | None] = [None] * folds
    rough = max(tolerance, ROUGH)
    lowest, best = np.inf, PENALTIES[0]
    for l2 in track(PENALTIES, len(PENALTIES), "choosing l2", shows_progress):
        lost = 0.0
        for number, cut in enumerate(cuts):
            own = fit_max_ent(rows[cut.train], target[cut.train], l2, iterations, rough, variance, weights[number])
            weights[number] = own
            logs = log_softmax(rows[cut.test] @ own[:, :-1].T + own[:, -1], axis=1)
            lost -= float((target[cut.test] * logs).sum())  # the entropy of the target is the same for all
        if lost < lowest:
            lowest, best = lost, l2
        elif lost > WORSE * lowest:
            break
    return best
