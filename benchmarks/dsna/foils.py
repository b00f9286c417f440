"""What DSNA is compared with in Tables I and II and Figure 8, as scikit-learn estimators.

``FOILS`` names them all with the settings to choose from by validation. They take features as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVR

from benchmarks.dsna.ordinal_hyperplanes import OrdinalHyperplanes
from benchmarks.dsna.ordinal_svm import OrdinalSVM
from benchmarks.dsna.persons import Setting, grid

OFFSET = 2.0
"""Years that are added before a logarithm."""


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


class Foil(NamedTuple):
    """One method of the table.

    Attributes:
        make: The estimator of a setting.
        settings: To choose from.
    """

    make: Callable[..., Any]
    settings: list[Setting]


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
"""The paper's setting, and with what the cost-sensitive forest has: more trees and features, log ages."""

FOILS: dict[str, Foil] = {
    "RF": Foil(_forest, _FORESTS),
    "RF+SMOTE": Foil(lambda **forest: Oversampled(_forest(**forest)), _FORESTS),
    "RED-SVM": Foil(OrdinalSVM, grid(C=[0.1, 0.3, 1.0, 3.0])),
    "OHRank": Foil(OrdinalHyperplanes, grid(C=[3.0, 10.0, 30.0, 100.0], gamma=[0.1, 0.3, 1.0])),
    "ridge": Foil(Ridge, grid(alpha=[0.03, 0.1, 0.3, 1.0])),
    "SVR on log age": Foil(
        lambda **machine: _log(SVR(**machine)), grid(C=[1.0, 3.0, 10.0], gamma=[0.1, 0.3, 1.0], epsilon=[0.05, 0.1])
    ),
}
"""Values are to be above -2 for the logarithm, as ages are."""
