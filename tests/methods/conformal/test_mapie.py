"""MAPIE as oracle where its scores are the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, CrossConformal

mapie = pytest.importorskip("mapie")

HALF = 100
"""Of the flat distributions that make the score of a value its distance from their middle."""
LINE = LabelSpace.ordinal(range(-300, 301))


class Whole(RegressorMixin, BaseEstimator):
    """Least squares, rounded, so that a flat distribution about it covers whole cells."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Whole:
        self.model_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X).round()


def flat(middle: np.ndarray) -> np.ndarray:
    return (np.abs(np.arange(-300, 301) - middle[:, None]) <= HALF).astype(float)


@pytest.fixture
def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    return x, (x @ [30, 20, 10] + 10 * rng.normal(size=120)).clip(-150, 150)


def test_split_intervals(problem: tuple[np.ndarray, np.ndarray]) -> None:
    from mapie.regression import SplitConformalRegressor

    x, y = problem
    model = Whole().fit(x[:40], y[:40])
    oracle = SplitConformalRegressor(model, confidence_level=[0.5, 0.8, 0.9], prefit=True)
    oracle.conformalize(x[40:80], y[40:80])
    _, expected = oracle.predict_interval(x[80:])
    ours = Conformal.fit(LINE, flat(model.predict(x[40:80])), y[40:80])
    for number, level in enumerate((0.5, 0.8, 0.9)):
        found = ours.interval(flat(model.predict(x[80:])), level)
        np.testing.assert_allclose(found, expected[:, :, number], atol=1e-3)


def test_cross_intervals(problem: tuple[np.ndarray, np.ndarray]) -> None:
    from mapie.regression import CrossConformalRegressor

    x, y = problem
    folds = KFold(4)
    oracle = CrossConformalRegressor(Whole(), confidence_level=0.8, method="plus", cv=folds)
    oracle.fit_conformalize(x[:80], y[:80])
    _, expected = oracle.predict_interval(x[80:])
    fold, out, new = np.zeros(80, int), np.zeros(80), []
    for number, (train, rest) in enumerate(folds.split(x[:80])):
        model = Whole().fit(x[train], y[train])
        fold[rest], out[rest] = number, model.predict(x[rest])
        new.append(flat(model.predict(x[80:])))
    found = CrossConformal.fit(LINE, flat(out), y[:80], fold).interval(np.stack(new), 0.8)
    np.testing.assert_allclose(found, expected[:, :, 0], atol=1e-3)
