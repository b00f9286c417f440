"""Which group a positive instance is to start in."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ldl.methods.boosting.likelihood import Bags

STARTS = 50
"""Runs of k-means, of which the best is taken."""


def clusters(bags: Bags, groups: int, whitened: float, seed: int) -> np.ndarray:
    """Cluster of every instance, (N,) in 0..groups - 1, by k-means of the instances of positive bags; -1 of the others.

    Features count alike, in units of their spread, or with ``whitened`` the principal components of all instances that
    hold this share of their variance. The components are not those of the positives alone: what tells kinds of
    positives apart would be spread as widely as the rest. Soft labels weigh. Where fewer than ``groups`` instances
    differ, clusters stay empty.
    """
    weights = np.repeat(bags.positive, np.diff(bags.starts))
    own = weights > 0
    found = np.full(len(weights), -1)
    # Sums over several threads are rounded otherwise.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = _standardize(bags.rows if whitened else bags.rows[own])
        if whitened and rows.any():
            rows = PCA(whitened, whiten=True, svd_solver="covariance_eigh").fit_transform(rows)
        rows = rows[own] if whitened else rows
        means = KMeans(min(groups, len(rows)), n_init=STARTS, random_state=seed % 2**32)
        found[own] = means.fit_predict(rows, sample_weight=weights[own])
    return found


def _standardize(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    spread = rows.std(0)
    return (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)
