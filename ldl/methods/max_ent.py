"""Maximum entropy models of label distributions by L-BFGS, and the choice of their weight penalty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.decomposition import PCA

from ldl.moved import old_names
from ldl.progress import track
from ldl.protocols import kfold

__getattr__ = old_names(__name__)

PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
"""Tried from the strongest to the weakest, each with a warm start from the one before."""
WORSE = 1.01
"""Multiple of the lowest cross-entropy at which weaker penalties are skipped. Strong ones may hardly differ."""
ROUGH = 1e-4
"""Tolerance for the comparison of penalties."""
FOLDS, SEED = 5, 0
"""Number of inner folds and the seed of their shuffle; the same rows always give the same folds."""
LEAST_CURVATURE = 1e-3
"""Curvature of the loss that is assumed for the scores of a label without mass."""


def principal_axes(rows: np.ndarray) -> PCA:
    """Return the min(N, F) principal axes of (N, F) float64 rows, not all equal.

    A rotation of the rows keeps the squared norm of the weights, and so the minimum of :func:`fit_max_ent` with a
    penalty. Without a penalty the minimum is not unique, and early stopping ends elsewhere.
    """
    solver = "covariance_eigh" if rows.shape[1] <= len(rows) else "full"
    return PCA(svd_solver=solver).set_output(transform="default").fit(rows)


def along_features(weights: np.ndarray, axes: PCA) -> np.ndarray:
    """Return the weights (C, F + 1) on features from the weights (C, A + 1) on the principal axes."""
    coefficients = weights[:, :-1] @ axes.components_
    return np.concatenate([coefficients, weights[:, -1:] - (coefficients @ axes.mean_)[:, None]], 1)


def fit_max_ent(
    rows: np.ndarray, target: np.ndarray, l2: float, iterations: int, tolerance: float,
    variance: np.ndarray | None = None, start: np.ndarray | None = None, step: Callable[[], object] = lambda: None,
    shares: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Fit the weights (C, F + 1), biases last, of :class:`ldl.heads.max_ent.MaxEnt`, in float64.

    Args:
        rows: (N, F) float64.
        target: (N, C) float64.
        l2: Weight of half the squared norm of the weights without the biases.
        iterations: Maximum number of iterations.
        tolerance: Largest entry of the gradient at which the fit stops.
        variance: (F,) variances of uncorrelated features, as along :func:`principal_axes`. L-BFGS then scales weights
            by the diagonal of the Hessian at the best biases. The loss has about the same curvature in all directions,
            which takes a fraction of the steps. None does not scale.
        start: Initial weights; None is zero.
        step: Callback after every iteration.
        shares: (N,) weight of each row in the mean loss; None for equal weights.
    """
    shares = np.full(len(rows), 1 / len(rows)) if shares is None else shares / shares.sum()
    target = target * shares[:, None]
    shape = (target.shape[1], rows.shape[1] + 1)
    units = np.ones(shape)
    if variance is not None:
        mean = target.sum(0)
        curvature = np.maximum(mean * (1 - mean / mean.sum()), LEAST_CURVATURE)[:, None]
        units = 1 / np.sqrt(np.concatenate([curvature * variance + l2, curvature], 1))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        both = flat.reshape(shape) * units
        logs = log_softmax(rows @ both[:, :-1].T + both[:, -1], axis=1)
        difference = np.exp(logs) * target.sum(1, keepdims=True) - target
        gradient = np.concatenate([difference.T @ rows + l2 * both[:, :-1], difference.sum(0)[:, None]], 1)
        cross_entropy = -(target * logs).sum()
        return cross_entropy + l2 / 2 * float((both[:, :-1] ** 2).sum()), (gradient * units).ravel()

    result = minimize(
        loss, np.zeros(units.size) if start is None else (start / units).ravel(), jac=True, method="L-BFGS-B",
        callback=lambda _: step(),
        options={"maxiter": iterations, "gtol": tolerance, "ftol": 0.0, "maxfun": 20 * iterations},
    )  # fmt: skip
    weights: np.ndarray = result.x.reshape(shape) * units
    return weights


def choose_l2(
    rows: np.ndarray, target: np.ndarray, iterations: int, tolerance: float, groups: np.ndarray | None = None,
    variance: np.ndarray | None = None, shares: np.ndarray | None = None, shows_progress: bool = False,
) -> float:  # fmt: skip
    """Return the one of :data:`PENALTIES` with the smallest mean KL divergence on held-out rows.

    Args:
        rows: (N, F) float64.
        target: (N, C) float64.
        iterations: Maximum number of iterations of a fit.
        tolerance: See :func:`fit_max_ent`.
        groups: (N,) groups of rows that are held out together; None holds out single rows.
        variance: See :func:`fit_max_ent`.
        shares: (N,) weight of each row; None for equal weights.
        shows_progress: Whether to show a progress bar.

    Returns:
        The penalty; the strongest one for a single row or group.
    """
    shares = np.ones(len(rows)) if shares is None else shares
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
            options = l2, iterations, rough, variance, weights[number]
            fitted = fit_max_ent(rows[cut.train], target[cut.train], *options, shares=shares[cut.train])
            weights[number] = fitted
            logs = log_softmax(rows[cut.test] @ fitted[:, :-1].T + fitted[:, -1], axis=1)
            lost -= float(
                (shares[cut.test, None] * target[cut.test] * logs).sum()
            )  # the entropy of the target is the same for all penalties
        if lost < lowest:
            lowest, best = lost, l2
        elif lost > WORSE * lowest:
            break
    return best
