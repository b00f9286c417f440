"""The baselines of DSNA in Tables I and II and Figure 8, as scikit-learn estimators on unscaled features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC, SVR

from benchmarks.dsna.subjects import Setting, grid

OFFSET = 2.0
"""Years that are added before a logarithm."""


class Oversampled(RegressorMixin, BaseEstimator):
    """A regressor that is trained with synthetic rows of rare values; see :func:`oversample`.

    Args:
        regressor: Any regressor.
        width: Width of a band of values.
        share: Rows that each band is filled up to, as a share of the largest band.
        neighbours: Neighbours of a row to draw from.
        seed: Seed of the synthetic rows.
    """

    def __init__(
        self, regressor: Any, width: float = 5.0, share: float = 0.5, neighbours: int = 5, seed: int = 0
    ) -> None:
        self.regressor = regressor
        self.width = width
        self.share = share
        self.neighbours = neighbours
        self.seed = seed

    def fit(self, features: np.ndarray, values: np.ndarray) -> Oversampled:
        """Fit on (N, F) and (N,)."""
        rows = oversample(features, values, self.width, self.share, self.neighbours, self.seed)
        self.regressor_ = clone(self.regressor).fit(*rows)
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return values (N,)."""
        return self.regressor_.predict(features)


def oversample(
    features: np.ndarray, values: np.ndarray, width: float, share: float, neighbours: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Append synthetic rows of rare values, as in SMOTER (Torgo et al. 2013); returns (M, F) and (M,).

    Every band of values with fewer rows than ``share`` of the largest band is filled up to that number. A synthetic row
    lies at a random place between a row of the band and one of its nearest neighbours in feature space, among the rows
    of the band and of the adjacent bands; its value lies at the same place between the two values (SMOTER's average
    weighted by inverse distances). A row without neighbours is repeated.
    """
    values = np.asarray(values, np.float64)
    rng = np.random.default_rng(seed)
    band = np.floor(values / width).astype(int)
    names, counts = np.unique(band, return_counts=True)
    wanted = int(share * counts.max())
    parts, labels = [features], [values]
    for name, count in zip(names, counts):
        if count >= wanted:
            continue
        members, near = np.flatnonzero(band == name), np.flatnonzero(np.abs(band - name) <= 1)
        # A row is its own nearest neighbour, and left out if there are others.
        search = NearestNeighbors(n_neighbors=min(neighbours + 1, len(near))).fit(features[near])
        found = near[search.kneighbors(features[members], return_distance=False)]
        found = found[:, 1:] if found.shape[1] > 1 else found
        origin = rng.integers(len(members), size=wanted - count)
        other = found[origin, rng.integers(found.shape[1], size=wanted - count)]
        place = rng.random(wanted - count)
        start = members[origin]
        parts.append(features[start] + place[:, None] * (features[other] - features[start]))
        labels.append(values[start] + place * (values[other] - values[start]))
    return np.concatenate(parts), np.concatenate(labels)


class OrdinalHyperplanes(RegressorMixin, BaseEstimator):
    """OHRank: Chang, Chen & Hung, "Ordinal hyperplanes ranker with cost sensitivities for age estimation", CVPR 2011.

    At every threshold between two neighbouring training labels a support vector machine decides who is above it; each
    row costs as much as its label lies away from the threshold (absolute costs). The prediction is the lowest label
    plus the steps between labels whose thresholds are passed.

    Args:
        C: Weight of the errors.
        gamma: Coefficient of the kernel exp(-gamma |x - x'|^2).
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
        """Return values (N,)."""
        kernel = rbf_kernel(features, self.rows_, gamma=self.gamma)
        passed = np.stack([machine.predict(kernel) for machine in self.machines_], 1)
        return self.labels_[0] + passed @ np.diff(self.labels_)


class OrdinalSVM(RegressorMixin, BaseEstimator):
    """RED-SVM: Li & Lin, "Ordinal regression by extended binary classification", NIPS 2006, with absolute costs.

    One direction w serves all thresholds b_k between neighbouring training labels:

        min 1/2 |w|^2 + 1/2 |b|^2 + C sum_i sum_k max(0, 1 - s_ik (w.x_i - b_k))^2

    where s_ik is 1 for a row whose label is above the k-th, else -1. That is liblinear's squared hinge on the extended
    rows. The prediction is the label as many steps up as thresholds are passed.

    Args:
        C: Weight of the errors.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, features: np.ndarray, values: np.ndarray) -> OrdinalSVM:
        """Fit on (N, F) and (N,); the different values are the ranks."""
        self.labels_ = np.unique(values)
        signs = np.where(np.asarray(values)[:, None] > self.labels_[:-1], 1.0, -1.0)
        width = features.shape[1]

        def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            direction, thresholds = parameters[:width], parameters[width:]
            slack = np.maximum(0, 1 - signs * ((features @ direction)[:, None] - thresholds))
            pull = 2 * self.C * signs * slack
            gradient = np.concatenate([direction - features.T @ pull.sum(1), thresholds + pull.sum(0)])
            return 0.5 * float(parameters @ parameters) + self.C * float((slack**2).sum()), gradient

        start = np.zeros(width + signs.shape[1])
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-9})
        self.direction_, self.thresholds_ = found.x[:width], found.x[width:]
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return values (N,), which are training labels."""
        return self.labels_[((features @ self.direction_)[:, None] > self.thresholds_).sum(1)]


def _forest(trees: int, share: str | float, log: bool) -> Any:
    forest = RandomForestRegressor(
        trees, max_depth=10, min_samples_split=5, max_features=share, random_state=0, n_jobs=1
    )
    return _log(forest) if log else forest


def _log(regressor: Any) -> TransformedTargetRegressor:
    return TransformedTargetRegressor(regressor, func=_into_logarithms, inverse_func=_out_of_logarithms)


def _into_logarithms(values: np.ndarray) -> np.ndarray:
    return np.log(values + OFFSET)


def _out_of_logarithms(logarithms: np.ndarray) -> np.ndarray:
    return np.exp(logarithms) - OFFSET


_FORESTS: list[Setting] = [
    {"trees": 20, "share": "sqrt", "log": False},
    {"trees": 20, "share": 0.3, "log": True},
    {"trees": 50, "share": 0.3, "log": True},
    {"trees": 50, "share": 1.0, "log": True},
]
"""The paper's hyperparameters, and those of the cost-sensitive forest: more trees and features, log ages."""

BASELINES: dict[str, tuple[Callable[..., Any], list[Setting]]] = {
    "RF": (_forest, _FORESTS),
    "RF+SMOTE": (lambda **forest: Oversampled(_forest(**forest)), _FORESTS),
    "RED-SVM": (OrdinalSVM, grid(C=[0.1, 0.3, 1.0, 3.0])),
    "OHRank": (OrdinalHyperplanes, grid(C=[3.0, 10.0, 30.0, 100.0], gamma=[0.1, 0.3, 1.0])),
    "ridge": (Ridge, grid(alpha=[0.03, 0.1, 0.3, 1.0])),
    "SVR on log age": (
        lambda **machine: _log(SVR(**machine)), grid(C=[1.0, 3.0, 10.0], gamma=[0.1, 0.3, 1.0], epsilon=[0.05, 0.1])
    ),
}  # fmt: skip
"""Function of hyperparameters that makes an estimator, and hyperparameters to choose from."""
