"""The estimator among scikit-learn's tools, and what is its own."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import LDLF, BoostedTrees, MaxEnt, MeanPredictor, Softmax, StructRF
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.metrics.functional import kl

SMALL = StructRF(trees=3, depth=6)


def problem(rows: int = 80, labels: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Features and distributions that follow from them."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, 4))
    odds = np.exp(features @ rng.normal(size=(4, labels)))
    return features, odds / odds.sum(1, keepdims=True)


X, D = problem()


VALUES = np.round(30 + 8 * X[:, 0] + X[:, 1])


@pytest.mark.slow
def test_persons_and_a_grid_on_sjaffe(ldl_data: Path) -> None:
    data = TabularLDL(path="ldl/SJAFFE.mat", root=str(ldl_data))
    data.setup()
    features, persons, target = data.features, data.groups, data.columns["target"].numpy()
    forest = StructRF(trees=10, search="random", features=0.3, out_of_bag=False)
    grid = {"head__min_leaf": [1, 3, 100], "scaling": ["none"]}
    search = GridSearchCV(LDLRegressor(forest), grid, cv=GroupKFold(5))
    search.fit(features, target, groups=persons)
    scores = search.cv_results_["mean_test_score"]
    constant = cross_val_score(LDLRegressor("MeanPredictor"), features, target, groups=persons, cv=GroupKFold(5))
    assert constant.mean() < scores.max() < 0 and scores.argmin() == 2
    assert search.best_estimator_.head.min_leaf == search.best_params_["head__min_leaf"]
    assert search.best_estimator_.predictor_.task.head.min_leaf < 100 == grid["head__min_leaf"][2]
    assert search.predict(features).shape == (213, 6)


def test_a_score_is_minus_the_mean_divergence() -> None:
    estimator = LDLRegressor(SMALL).fit(X, D)
    each = kl(torch.from_numpy(estimator.predict(X)).double(), torch.from_numpy(D)).numpy()
    assert estimator.score(X, D) == pytest.approx(-each.mean(), rel=1e-5)
    weight = np.arange(80)
    assert estimator.score(X, D, weight) == pytest.approx(-np.average(each, weights=weight), rel=1e-5)


def test_all_measures_are_a_scoring() -> None:
    estimator = LDLRegressor(SMALL, labels=LabelSpace.ordinal(range(101)), random_state=1)
    found = cross_validate(estimator, X, VALUES, cv=KFold(2), scoring=LDLRegressor.measure)
    fitted = clone(estimator).fit(X[40:], VALUES[40:])
    expected = fitted.measure(X[:40], VALUES[:40])
    assert {"kl", "chebyshev", "mae", "cs5"} <= expected.keys()
    assert {name: found[f"test_{name}"][0] for name in expected} == pytest.approx(expected, nan_ok=True)
    assert expected["mae"] == pytest.approx(np.abs(fitted.predict(X[:40]) - VALUES[:40]).mean(), rel=1e-5)
    assert fitted.sigma_ == 2
    rows = LDLRegressor(SMALL).fit(X, D)
    assert rows.measure(X, D)["kl"] == pytest.approx(-rows.score(X, D), rel=1e-5)


def test_values_lie_on_labels_that_are_chosen_or_given() -> None:
    estimator = LDLRegressor(SMALL).fit(X, VALUES)
    assert estimator.labels_ == LabelSpace.ordinal(np.arange(VALUES.min(), VALUES.max() + 1))
    assert estimator.score(X, VALUES) > 0.8
    assert LDLRegressor(SMALL, step=5.0).fit(X, VALUES).labels_.axes[0][1] % 5 == 0
    given = LDLRegressor(MeanPredictor(), labels=LabelSpace.ordinal(range(0, 101)), sigma=0.1).fit(X, VALUES)
    share = np.bincount(VALUES.astype(int), minlength=101) / 80
    np.testing.assert_allclose(given.predict_distribution(X[:1])[0], share, atol=1e-6)
    with pytest.raises(LDLError, match="outside the labels 0 to 10"):
        LDLRegressor(SMALL, labels=LabelSpace.ordinal(range(11))).fit(X, VALUES)


def test_points_lie_on_a_grid() -> None:
    points = np.clip(X[:, :2] * 20, -60, 60)
    pose = LabelSpace.grid(range(-60, 61, 15), range(-60, 61, 15), "degrees")
    estimator = LDLRegressor(StructRF(trees=20), labels=pose).fit(X, points)
    assert estimator.predict(X).shape == (80, 2) and estimator.score(X, points) > 0.7
    assert estimator.predict_interval(X).shape == (80, 2, 2)


def test_frames_keep_their_names(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    target = pd.DataFrame(D, columns=["label:happy", "sad", "angry"])
    estimator = LDLRegressor(SMALL).fit(frame, target)
    assert estimator.labels_.names == ("happy", "sad", "angry")
    assert list(estimator.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[list("badc")])
    estimator.save(tmp_path / "model.ckpt")
    found = Predictor.from_checkpoint(tmp_path / "model.ckpt").predict(frame[list("dbac")]).distribution
    assert np.array_equal(found, estimator.predict(frame))


@pytest.mark.slow
def test_missing_features_are_for_heads_that_take_them() -> None:
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    estimator = LDLRegressor(BoostedTrees(rounds=5)).fit(holes, D)
    assert np.isfinite(estimator.predict(holes)).all()
    with pytest.raises(ValueError, match="NaN"):
        LDLRegressor(SMALL).fit(holes, D)


def test_the_random_state_decides() -> None:
    def found(random_state: Any) -> np.ndarray:
        return LDLRegressor(Softmax(hidden=[4]), epochs=1, random_state=random_state).fit(X, D).predict(X)

    assert np.array_equal(found(1), found(1)) and not np.array_equal(found(1), found(2))
    assert np.array_equal(found(np.random.RandomState(3)), found(np.random.RandomState(3)))  # noqa: NPY002
    assert not np.array_equal(found(None), found(None))


def test_pickled_and_saved_it_predicts_the_same(tmp_path: Path) -> None:
    estimator = LDLRegressor(MaxEnt(), conformal="cross", conformal_folds=3).fit(X, VALUES)
    joblib.dump(estimator, tmp_path / "model.joblib")
    estimator.save(tmp_path / "model.ckpt")
    again = joblib.load(tmp_path / "model.joblib")
    assert np.array_equal(again.predict_interval(X, 0.8), estimator.predict_interval(X, 0.8))
    saved = Predictor.from_checkpoint(tmp_path / "model.ckpt").predict(X)
    assert saved.value is not None and np.array_equal(saved.value, estimator.predict(X))
    assert np.array_equal(saved.interval(0.8, calibrated=True), estimator.predict_interval(X, 0.8))


FAILURES: dict[str, tuple[dict[str, Any], Any, Any, dict[str, Any]]] = {
    "features": ({}, np.full((80, 2), np.nan), D, {}),
    "groups": ({}, pd.DataFrame(X[:, :2], columns=["a", "b"]), D, {"groups": [None] * 80}),
    "options": ({"epochs": 0}, X[:, :2], D, {}),
    "training": ({"head": LDLF(trees=2, depth=3, outputs=None), "lr": 1e30}, X[:, :2], D, {}),
    "calibration": ({"conformal": "cross", "conformal_folds": 81}, X[:, :2], D, {}),
}
"""Options, features, targets and other arguments of a fit that fails, early or late."""


@pytest.mark.parametrize("failure", FAILURES)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(failure: str) -> None:
    options, features, target, others = FAILURES[failure]
    fresh, fitted = LDLRegressor(SMALL), LDLRegressor(SMALL).fit(X, VALUES)
    before = fitted.predict(X), fitted.predict_interval(X), fitted.score(X, VALUES), vars(fitted).keys()
    for estimator in (fresh, fitted):
        estimator.set_params(**options)
        with pytest.raises(ValueError):  # noqa: PT011  # each of its own
            estimator.fit(features, target, **others)
    after = fitted.predict(X), fitted.predict_interval(X), fitted.score(X, VALUES), vars(fitted).keys()
    assert all(np.array_equal(one, two) for one, two in zip(before[:3], after[:3])) and before[3] == after[3]
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert vars(fresh).keys() == LDLRegressor().get_params(deep=False).keys()


def test_parameters_are_set_together_or_not_at_all() -> None:
    estimator = LDLRegressor(SMALL)
    for wrong in ({"epochs": 3, "head__dept": 2}, {"epochs": 3, "deph": 2}):
        with pytest.raises(ValueError, match="dep"):
            estimator.set_params(**wrong)
        assert estimator.epochs == 60 and estimator.head is SMALL


@pytest.mark.parametrize(("name", "wrapped"), [("kl", "alone"), ("cosine", "pipeline"), ("crps", "alone")])
def test_a_search_takes_the_best_by_any_measure(name: str, wrapped: str) -> None:
    """The forest knows the values, the mean predictor does not."""
    regressor = LDLRegressor(labels=LabelSpace.ordinal(range(101)))
    estimator = make_pipeline(StandardScaler(), regressor) if wrapped == "pipeline" else regressor
    prefix = "ldlregressor__" if wrapped == "pipeline" else ""
    search = GridSearchCV(
        estimator, {f"{prefix}head": ["MeanPredictor", SMALL]}, cv=2, scoring=LDLRegressor.scorer(name), n_jobs=1
    ).fit(X, VALUES)
    assert search.best_index_ == 1
    given = search.best_estimator_
    rows = StandardScaler().fit(X).transform(X) if wrapped == "pipeline" else X
    fitted = search.best_estimator_[-1] if wrapped == "pipeline" else search.best_estimator_
    assert abs(LDLRegressor.scorer(name)(given, X, VALUES)) == pytest.approx(fitted.measure(rows, VALUES)[name])


def test_scorers_pickle_and_refuse_what_has_no_direction() -> None:
    estimator, scorer = LDLRegressor(SMALL).fit(X, D), LDLRegressor.scorer("kl")
    assert pickle.loads(pickle.dumps(scorer))(estimator, X, D) == pytest.approx(estimator.score(X, D), rel=1e-5)
    for name, words in (
        ("ckl", "must be one of kl, .*; did you mean 'kl'"),
        ("mae", "'mae' must"),
        ("set_size50", "must"),
    ):
        with pytest.raises(LDLError, match=words):
            LDLRegressor.scorer(name)(estimator, X, D)
    with pytest.raises(LDLError, match="'coverage90' must be one of"):
        LDLRegressor.scorer("coverage90")(LDLRegressor(SMALL).fit(X, VALUES), X, VALUES)


def test_weights_of_a_score_are_checked_like_those_of_a_fit() -> None:
    estimator = LDLRegressor(SMALL).fit(X, D)
    weight = np.arange(len(X)) % 3
    kept = weight > 0
    assert estimator.score(X, D, weight) == pytest.approx(estimator.score(X[kept], D[kept], 0.1 * weight[kept]))
    for wrong, words in ((-weight, "must be at least 0"), (weight[:5], "one weight per row"), (0 * weight, "are zero")):
        with pytest.raises(LDLError, match=words):
            estimator.score(X, D, wrong)


def test_a_search_passes_weights_to_fit_and_score() -> None:
    weight = np.arange(len(X)) % 3 + 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        found = {}
        for request in (True, False):
            scorer = LDLRegressor.scorer("kl")
            assert scorer.set_score_request(sample_weight=request) is scorer
            estimator = LDLRegressor("MeanPredictor").set_fit_request(sample_weight=True)
            cut = KFold(2)
            result = cross_validate(estimator, X, D, cv=cut, scoring=scorer, params={"sample_weight": weight})
            found[request] = result["test_score"]
            for (train, test), score in zip(cut.split(X), found[request]):
                fitted = LDLRegressor("MeanPredictor").fit(X[train], D[train], weight[train])
                own = weight[test] if request else None
                assert score == pytest.approx(-fitted.measure(X[test], D[test], own)["kl"])
        assert not np.allclose(found[True], found[False])


def test_values_outside_the_labels_of_a_fold_do_not_end_a_search() -> None:
    order = VALUES.argsort()
    estimator = LDLRegressor(SMALL).fit(X[order[:60]], VALUES[order[:60]])
    found = estimator.measure(X, VALUES)
    assert np.isnan(found["kl"]) and np.isnan(LDLRegressor.scorer("kl")(estimator, X, VALUES))
    assert found["mae"] == pytest.approx(np.abs(estimator.predict(X) - VALUES).mean(), rel=1e-5)
    assert estimator.measure(X[order[:60]], VALUES[order[:60]])["kl"] >= 0
