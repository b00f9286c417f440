"""What DSNA is compared with: known remedies for imbalanced values, as scikit-learn estimators.

``FOILS`` names them all with the settings to choose from by validation. They take features as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVR

from benchmarks.dsna.ordinal_svm import OrdinalSVM
from ldl.methods.imbalance import inverse_density_weights

Rows = tuple[np.ndarray, np.ndarray]


class Reweighted(RegressorMixin, BaseEstimator):
    """A regressor with rows weighted by how rare their value is: by inverse frequency, or by LDS.

    Args:
        regressor: Any regressor that takes ``sample_weight``.
        sigma: Smoothing of the label density, in the values' unit; 0 for plain frequencies.
        power: 1 for inverse densities, 0.5 for the inverse of their roots.
    """

    def __init__(self, regressor: Any, sigma: float = 0.0, power: float = 1.0) -> None:
        self.regressor = regressor
        self.sigma = sigma
        self.power = power

    def fit(self, features: np.ndarray, values: np.ndarray) -> Reweighted:
        """Fit on (N, F) and (N,)."""
        weights = inverse_density_weights(values, sigma=self.sigma, power=self.power)
        self.regressor_ = clone(self.regressor).fit(features, values, sample_weight=weights)
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Values (N,)."""
        return self.regressor_.predict(features)


class Oversampled(RegressorMixin, BaseEstimator):
    """A regressor trained with synthetic rows of rare values; see :func:`oversample`.

    Args:
        regressor: Any regressor.
        width: Width of a band of values.
        share: Rows that each band is filled up to, as a share of the largest band.
        neighbours: Neighbours of a row to draw from.
        seed: Of the synthetic rows.
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
        """Values (N,)."""
        return self.regressor_.predict(features)


def oversample(
    features: np.ndarray, values: np.ndarray, width: float, share: float, neighbours: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows with synthetic ones of rare values behind them, as in SMOTER (Torgo et al. 2013).

    Every band of values with fewer rows than ``share`` of the largest band is filled up to that number. A synthetic row
    lies at a random place between a row of the band and one of its nearest neighbours in feature space, which are
    sought among the rows of the band and of those beside it; its value lies at the same place between the two values
    (SMOTER's average weighted by inverse distances). A band whose row has no neighbour so near in value repeats it.

    Args:
        features: (N, F).
        values: (N,).
        width: Width of a band, in the values' unit.
        share: In [0, 1]; 0 adds nothing.
        neighbours: Neighbours to draw from.
        seed: Of the draws.

    Returns:
        (M, F) and (M,), of which the first N are those given.
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
        # A row is its own nearest neighbour: one more is sought, and it is left out where there are others.
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


@dataclass(frozen=True)
class Foil:
    """One method of the table.

    Attributes:
        make: The estimator from its seed and the arguments of ``grid``.
        grid: Values of arguments to choose from on validation rows.
    """

    make: Callable[..., Any]
    grid: dict[str, list[Any]] = field(default_factory=dict)

    def settings(self) -> list[dict[str, Any]]:
        """All points of the grid."""
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]

    def choose(self, features: np.ndarray, values: np.ndarray, folds: list[Rows], seed: int) -> dict[str, Any]:
        """The setting with the least mean absolute error over the validation rows of all folds together.

        Args:
            features: (N, F).
            values: (N,).
            folds: Training and validation rows; the same for all foils that are compared.
            seed: Of everything random.
        """

        def error(setting: dict[str, Any]) -> float:
            errors = [
                np.abs(self.make(seed, **setting).fit(features[a], values[a]).predict(features[b]) - values[b])
                for a, b in folds
            ]
            return float(np.concatenate(errors).mean())

        return min(self.settings(), key=error)


def _forest(seed: int, features: float) -> RandomForestRegressor:
    return RandomForestRegressor(200, max_features=features, min_samples_leaf=2, random_state=seed, n_jobs=1)


def _log(regressor: Any) -> TransformedTargetRegressor:
    return TransformedTargetRegressor(regressor, func=np.log1p, inverse_func=np.expm1)


_SVR: dict[str, list[Any]] = {"C": [10.0, 30.0, 100.0, 300.0], "gamma": [0.1, 0.3, 1.0]}
_LOG_SVR: dict[str, list[Any]] = {"C": [0.3, 1.0, 3.0, 10.0], "gamma": [0.1, 0.3, 1.0]}
_FEATURES: dict[str, list[Any]] = {"features": [0.1, 0.33, 1.0]}
_LDS: dict[str, list[Any]] = {"sigma": [1.0, 2.0, 4.0], "power": [0.25, 0.5, 1.0]}

FOILS: dict[str, Foil] = {
    "ridge": Foil(lambda seed, alpha: Ridge(alpha), {"alpha": [0.03, 0.1, 0.3, 1.0, 3.0]}),
    "SVR": Foil(lambda seed, C, gamma: SVR(C=C, gamma=gamma), _SVR),
    "SVR on log(1 + value)": Foil(lambda seed, C, gamma: _log(SVR(C=C, gamma=gamma, epsilon=0.05)), _LOG_SVR),
    "forest": Foil(_forest, _FEATURES),
    "forest, SMOTER": Foil(
        lambda seed, share: Oversampled(_forest(seed, 0.33), share=share, seed=seed), {"share": [0.25, 0.5, 1.0]}
    ),
    "forest, weighted": Foil(lambda seed, features: Reweighted(_forest(seed, features)), _FEATURES),
    "RED-SVM, linear": Foil(lambda seed, C: OrdinalSVM(C), {"C": [0.03, 0.1, 0.3, 1.0, 3.0]}),
    "RED-SVM, RBF": Foil(
        lambda seed, C, gamma: OrdinalSVM(C, gamma), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 0.3, 1.0]}
    ),
    "SVR, LDS": Foil(
        lambda seed, C, sigma, power: Reweighted(SVR(C=C, gamma=0.3), sigma, power), {"C": [10.0, 30.0, 100.0]} | _LDS
    ),
}
"""Values are to be above -1 for the logarithm, as ages are."""
