"""Which group a positive instance is to start in."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ldl.boosting.likelihood import Bags

STARTS = 10
"""Runs of k-means, of which the best is taken."""


def clusters(bags: Bags, groups: int, seed: int) -> np.ndarray:
    """Cluster of every instance, (N,) in 0..groups - 1, by k-means of the instances of positive bags; -1 of the others.

    Features count alike, in units of their spread; soft labels weigh. Where fewer than ``groups`` instances differ,
    clusters stay empty.
    """
    weights = np.repeat(bags.positive, np.diff(bags.starts))
    found = np.full(len(weights), -1)
    rows = bags.rows[weights > 0].astype(np.float64)
    spread = rows.std(0)
    rows = (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)
    # Sums over several threads are rounded otherwise.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(min(groups, len(rows)), n_init=STARTS, random_state=seed % 2**32)
        found[weights > 0] = means.fit_predict(rows, sample_weight=weights[weights > 0])
    return found
