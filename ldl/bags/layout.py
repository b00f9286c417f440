"""Training bags: from padded tensors (B, J, F) to instances one after another, and initial groups of the positives."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from torch import Tensor

from ldl.errors import LDLError
from ldl.methods.rows import Rows
from ldl.methods.training_rows import check_finite, check_targets

KMEANS_STARTS = 50
"""Runs of k-means, of which the best is used."""


class PackedBags(NamedTuple):
    """Training bags, one instance after another.

    Attributes:
        rows: (N, F) float32 instances.
        starts: (B + 1,); bag i has the rows ``starts[i]`` to ``starts[i + 1]``, at least one.
        positive: (B,) weights of log p in the likelihood.
        negative: (B,) weights of log(1 - p); both weights sum to 1 over all bags.
        weight: (B,) number of equal bags that each counts as; empty for 1.
    """

    rows: np.ndarray
    starts: np.ndarray
    positive: np.ndarray
    negative: np.ndarray
    weight: np.ndarray = np.empty(0)

    @property
    def size(self) -> float:
        """Number of bags, or the sum of their weights."""
        return float(self.weight.sum()) if len(self.weight) else len(self.positive)


def present(features: Tensor) -> Tensor:
    """Return which instances of features (..., J, F) exist, (..., J): a missing instance is NaN throughout."""
    return ~features.isnan().all(-1)


def pack(name: str, rows: Rows, prior: float | None) -> PackedBags:
    """Check and pack the training bags of a head.

    Args:
        name: Name of the head, for messages.
        rows: Bags (B, J, F) with targets (B, 2), negative and positive, on the simplex.
        prior: Weight of positive against negative bags, in (0, 1); None uses their frequencies.

    Raises:
        LDLError: No bags, an empty bag, bags of one class, a feature that is not finite, or a target off the simplex.
    """
    features, target = rows.features, rows.target
    if features.ndim != 3 or not len(features) or target.shape != (len(features), 2):
        raise LDLError(
            f"{name} is fitted on bags (B, J, F) and labels (B, 2), B at least 1, "
            f"got {tuple(features.shape)} and {tuple(target.shape)}"
        )
    exists = present(features)
    counts = exists.sum(1).cpu().numpy()
    if not counts.all():
        raise LDLError(f"{name} cannot be fitted: training bag {int(counts.argmin())} has no instances; leave it out")
    instances = features[exists].float()
    check_finite(f"{name} cannot take", instances)
    check_targets(name, target)
    mass = (rows.share[:, None] * target.double()).cpu().numpy()
    shares = mass.sum(0)
    if not shares.all():
        only = "negative" if shares[1] == 0 else "positive"
        raise LDLError(f"{name} cannot be fitted: all {len(target)} training bags are {only}; both kinds are needed")
    if prior is not None:
        mass = mass / shares * (1 - prior, prior)
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
    negative, positive = np.ascontiguousarray(mass.T)
    weight = rows.weight_array
    return PackedBags(
        np.ascontiguousarray(instances.cpu().numpy()),
        starts,
        positive,
        negative,
        np.ones(len(target)) if weight is None else weight,
    )


def choose(bags: PackedBags, chosen: np.ndarray) -> PackedBags:
    """Return the bags with the numbers ``chosen``; their weights stay."""
    spans = [np.arange(bags.starts[i], bags.starts[i + 1]) for i in chosen]
    starts = np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64)
    return PackedBags(bags.rows[np.concatenate(spans)], starts, *(column[chosen] for column in bags[2:]))


def clusters(bags: PackedBags, groups: int, whitened: float, seed: int) -> np.ndarray:
    """Cluster the instances of positive bags by k-means, weighted by their labels.

    If fewer than ``groups`` instances differ, clusters stay empty.

    Args:
        bags: The training bags.
        groups: Number of clusters.
        whitened: 0 standardises the features. A share above 0 uses the whitened principal components of all instances
            that hold this share of their variance. Components of the positives alone would spread the features that
            separate kinds of positives as widely as the others.
        seed: Seed of k-means.

    Returns:
        Cluster of every instance, (N,) in 0..groups - 1; -1 in negative bags.
    """
    weights = np.repeat(bags.positive, np.diff(bags.starts))
    is_positive = weights > 0
    cluster = np.full(len(weights), -1)
    # One thread, because sums over several threads are rounded differently.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = _standardize(bags.rows if whitened else bags.rows[is_positive])
        if whitened and rows.any():
            axes = PCA(whitened, whiten=True, svd_solver="covariance_eigh").set_output(transform="default")
            rows = axes.fit_transform(rows)
        rows = rows[is_positive] if whitened else rows
        means = KMeans(min(groups, len(rows)), n_init=KMEANS_STARTS, random_state=seed % 2**32)
        cluster[is_positive] = means.fit_predict(rows, sample_weight=weights[is_positive])
    return cluster


def _standardize(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    spread = rows.std(0)
    return (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)
