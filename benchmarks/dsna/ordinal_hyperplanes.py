"""Ordinal regression by one support vector machine a threshold (OHRank)."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC


class OrdinalHyperplanes(RegressorMixin, BaseEstimator):
    """Chang, Chen & Hung, "Ordinal hyperplanes ranker with cost sensitivities for age estimation", CVPR 2011.

    At every threshold between two neighbouring training labels a machine tells who is above it, where each row costs as
    much as its label lies away from the threshold (absolute costs). The prediction is the lowest label and the steps
    between labels whose thresholds are passed.

    Args:
        C: Weight of the errors.
        gamma: Of the kernel exp(-gamma |x - x'|^2).
    """

    def __init__(self, C: float = 1.0, gamma: float = 0.3) -> None:
        self.C = C
        self.gamma = gamma

    def fit(self, features: np.ndarray, values: np.ndarray) -> OrdinalHyperplanes:
        """Fit on (N, F) and (N,)."""
        self.labels_ = np.unique(values)
        self.rows_ = features
        kernel = rbf_kernel(features, gamma=self.gamma)
        self.machines_ = []
        for threshold in (self.labels_[1:] + self.labels_[:-1]) / 2:
            cost = np.abs(values - threshold)
            machine = SVC(C=self.C, kernel="precomputed")
            self.machines_.append(machine.fit(kernel, values > threshold, cost / cost.mean()))
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Values (N,)."""
        kernel = rbf_kernel(features, self.rows_, gamma=self.gamma)
        passed = np.stack([machine.predict(kernel) for machine in self.machines_], 1)
        return self.labels_[0] + passed @ np.diff(self.labels_)
