"""MAPIE as oracle where its scores are the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, CrossConformal
from ldl.methods.conformal.scores import Scores
from ldl.methods.conformal.sets import label_scores

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


class Given(ClassifierMixin, BaseEstimator):
    """Predicts its input."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Given:
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X.argmax(1)


def test_randomised_adaptive_sets() -> None:
    from mapie.classification import SplitConformalClassifier

    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), 300)
    y = np.array([rng.choice(5, p=row) for row in p])
    oracle = SplitConformalClassifier(
        Given().fit(p, y), confidence_level=0.8, conformity_score="aps", prefit=True, random_state=0
    )
    oracle.conformalize(p[:200], y[:200])
    _, expected = oracle.predict_set(p[200:], conformity_score_params={"include_last_label": "randomized"})
    # Both draw the same numbers: MAPIE leaves out the share that is counted here.
    kept = [1 - np.random.RandomState(0).uniform(size=count) for count in (200, 100)]
    scores = label_scores(p[:200], kept[0])
    threshold = Scores.of(scores[np.arange(200), y[:200]]).threshold(0.8)
    np.testing.assert_array_equal(label_scores(p[200:], kept[1]) <= threshold + 1e-9, expected[:, :, 0])
