"""Ordinal regression by one support vector machine over all thresholds (RED-SVM)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.kernel_approximation import Nystroem


class OrdinalSVM(RegressorMixin, BaseEstimator):
    """Li & Lin, "Ordinal regression by extended binary classification", NIPS 2006, with absolute costs.

    Every row asks at every threshold between two neighbouring training labels whether its label is above. One
    direction w serves all thresholds b_k, which are coordinates of the machine like w:

        min 1/2 |w|^2 + 1/2 |b|^2 + C sum_i sum_k max(0, 1 - s_ik (w.x_i - b_k))^2

    where s_ik is 1 for a row whose label is above the k-th, else -1. That is liblinear's squared hinge on the extended
    rows, solved without writing them out. The prediction is the label as many steps up as thresholds are passed.

    Args:
        C: Weight of the errors.
        gamma: Of an RBF kernel, exp(-gamma |x - x'|^2); ``scale`` takes 1 / (F var(X)), None a linear machine.
    """

    def __init__(self, C: float = 1.0, gamma: float | Literal["scale"] | None = None) -> None:
        self.C = C
        self.gamma = gamma

    def fit(self, features: np.ndarray, values: np.ndarray) -> OrdinalSVM:
        """Fit on (N, F) and (N,); the different values are the ranks."""
        self.labels_ = np.unique(values)
        if self.gamma is not None:
            gamma = 1 / (features.shape[1] * features.var()) if self.gamma == "scale" else self.gamma
            # With as many components as rows the kernel is exact.
            self.map_ = Nystroem(kernel="rbf", gamma=gamma, n_components=len(features), random_state=0).fit(features)
        inputs = self._mapped(features)
        signs = np.where(np.asarray(values)[:, None] > self.labels_[:-1], 1.0, -1.0)
        width = inputs.shape[1]

        def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            direction, thresholds = parameters[:width], parameters[width:]
            slack = np.maximum(0, 1 - signs * ((inputs @ direction)[:, None] - thresholds))
            pull = 2 * self.C * signs * slack
            gradient = np.concatenate([direction - inputs.T @ pull.sum(1), thresholds + pull.sum(0)])
            return 0.5 * float(parameters @ parameters) + self.C * float((slack**2).sum()), gradient

        start = np.zeros(width + signs.shape[1])
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-9})
        self.direction_, self.thresholds_ = found.x[:width], found.x[width:]
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Values (N,), each one of the training labels."""
        passed = (self._mapped(features) @ self.direction_)[:, None] > self.thresholds_
        return self.labels_[passed.sum(1)]

    def _mapped(self, features: np.ndarray) -> np.ndarray:
        return features if self.gamma is None else self.map_.transform(features)
