"""Intervals and sets of the estimator hold the truth as often as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import MeanPredictor, StructRF
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal


def problem(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.round(50 + 10 * X[:, 0] + (2 + 3 * (X[:, 1] > 0)) * rng.normal(size=rows))


LABELS = LabelSpace.ordinal(range(0, 101))
FOREST = StructRF(trees=3, search="random", out_of_bag=False)


def coverage(estimator: LDLRegressor, level: float, rows: int = 2000) -> float:
    X, value = problem(rows, seed=1)
    ends = estimator.predict_interval(X, level)
    assert estimator.labels_.axes[0][0] <= ends.min() and ends.max() <= estimator.labels_.axes[0][-1]
    return float(((ends[:, 0] <= value) & (value <= ends[:, 1])).mean())


@pytest.mark.parametrize("options", [{"conformal": "cross"}, {"conformal": "split", "val_fraction": 0.5}])
def test_calibrated_intervals_cover(options: dict[str, Any], level: float = 0.9) -> None:
    """Three deviations of a coverage that 400 (200) rows calibrate and 2000 measure."""
    forest = StructRF(trees=10, min_leaf=10, search="random", out_of_bag=False)
    estimator = LDLRegressor(forest, labels=LABELS, sigma=0.5, **options).fit(*problem(400))
    slack = 3 * np.sqrt(level * (1 - level) * (1 / (400 if "cross" in options.values() else 200) + 1 / 2000))
    assert level - slack < coverage(estimator, level) < level + slack + 0.03


@pytest.mark.parametrize("weight", [None, np.random.default_rng(0).integers(1, 9, 60).astype(float)], ids=["", "w"])
def test_cross_calibration_is_that_of_predictions_out_of_fold(weight: np.ndarray | None) -> None:
    X, value = problem(60)
    person = np.repeat(np.arange(20), 3)
    estimator = LDLRegressor(FOREST, labels=LABELS, conformal="cross", conformal_folds=4)
    estimator.fit(X, value, groups=person, sample_weight=weight)
    predicted = np.empty((60, 101), np.float32)
    order = np.random.RandomState(0).permutation(20)  # noqa: NPY002  # of KFold(4, shuffle=True, random_state=0)
    for fold in np.split(order, 4):
        out = np.isin(person, fold)
        of_fold = None if weight is None else weight[~out]
        model = LDLRegressor(FOREST, labels=LABELS).fit(X[~out], value[~out], sample_weight=of_fold)
        predicted[out] = model.predict_distribution(X[out])
    expected = Conformal.fit(LABELS, predicted, value, person, weight)
    found = estimator.predictor_.task.calibration
    assert found is not None and found.units == expected.units == 20
    np.testing.assert_allclose(found.scores[0].score, expected.scores[0].score, atol=1e-5)
    np.testing.assert_allclose(found.scores[0].weight, expected.scores[0].weight, rtol=1e-5)
    plain = LDLRegressor(FOREST, labels=LABELS).fit(X, value, groups=person, sample_weight=weight)
    assert np.array_equal(plain.predict(X), estimator.predict(X))


def test_sets_hold_true_mass() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    odds = np.exp(X @ rng.normal(size=(3, 5)) + rng.normal(size=(600, 5)))
    D = odds / odds.sum(1, keepdims=True)
    estimator = LDLRegressor(StructRF(trees=5, search="random"), conformal="cross").fit(X[:300], D[:300])
    chosen = estimator.predict_set(X[300:], 0.8)
    assert chosen.any(1).all() and not chosen.all()
    assert 0.78 < (D[300:] * chosen).sum(1).mean() < 0.95


@pytest.mark.parametrize("options", [{"conformal": "cross", "conformal_folds": 3}, {"conformal": "split"}])
def test_few_rows_calibrate_low_levels(options: dict[str, Any], recwarn: pytest.WarningsRecorder) -> None:
    X, value = problem(6)
    estimator = LDLRegressor(MeanPredictor(), labels=LABELS, val_fraction=0.5, **options).fit(X, value)
    units = 6 if "cross" in options.values() else 3
    calibration = estimator.predictor_.task.calibration
    assert calibration is not None and calibration.units == units
    ends = estimator.predict_interval(X, 0.5)
    assert np.array_equal(ends, calibration.interval(estimator.predict_distribution(X), 0.5).astype(np.float32))
    assert (ends[:, 1] - ends[:, 0] < 100).all() and not recwarn.list
    with pytest.warns(UserWarning, match=f"level 0.9 needs 9 calibration rows or groups, and there are {units}"):
        assert np.array_equal(estimator.predict_interval(X, 0.9), np.tile([0, 100], (6, 1)))


def test_split_calibration_is_that_of_the_held_out_rows() -> None:
    X, value = problem(60)
    estimator = LDLRegressor(FOREST, labels=LABELS, conformal="split", val_fraction=0.5).fit(X, value)
    assert estimator.predictor_.task.calibration.units == 30
    with pytest.raises(LDLError, match=r"LDLRegressor.conformal_folds 5 must be in 2\.\.4, the number of rows"):
        LDLRegressor(FOREST, labels=LABELS, conformal="cross").fit(X[:4], value[:4])
    with pytest.raises(LDLError, match=r"conformal_folds 5 must be in 2\.\.3, the number of groups"):
        LDLRegressor(FOREST, labels=LABELS, conformal="cross").fit(X, value, groups=np.arange(60) % 3)
