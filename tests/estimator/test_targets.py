"""Targets, weights and groups: what they mean, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import MaxEnt, MeanPredictor, StructRF
from ldl.labels import LabelSpace

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
D = RNG.dirichlet(np.ones(4), 40)
VALUES = X[:, 0] + 2


@pytest.mark.parametrize(("head", "target"), [(MeanPredictor(), VALUES), (MaxEnt(l2=0.1, tolerance=1e-8), D)])
def test_a_weight_counts_rows(head: Any, target: np.ndarray) -> None:
    weight = RNG.integers(0, 4, 40)
    weighted = LDLRegressor(head).fit(X, target, sample_weight=weight)
    repeated = LDLRegressor(head).fit(X.repeat(weight, 0), target.repeat(weight, 0))
    assert weighted.labels_ == repeated.labels_
    np.testing.assert_allclose(weighted.predict_distribution(X), repeated.predict_distribution(X), atol=1e-6)
    plain = LDLRegressor(head).fit(X, target)
    assert np.array_equal(plain.predict(X), LDLRegressor(head).fit(X, target, np.ones(40)).predict(X))
    assert np.abs(plain.predict(X) - weighted.predict(X)).max() > 1e-3


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.zeros(40), "all 40 sample weights are zero; give at least one row a positive weight"),
        (np.r_[np.ones(39), -1], "sample_weight of row 39 is -1"),
        (np.ones(39), r"sample_weight has shape \(39,\); give one weight per row, \(40,\)"),
    ],
)
def test_other_weights_are_refused(weight: np.ndarray, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        LDLRegressor(MeanPredictor()).fit(X, D, sample_weight=weight)


def test_classes_can_be_made_distributions() -> None:
    names = np.where(X[:, :1] > 0, "yes", "no")
    encoder = OneHotEncoder(sparse_output=False).set_output(transform="pandas")
    found = LDLRegressor(StructRF(trees=3)).fit(X, encoder.fit_transform(pd.DataFrame({"is": names[:, 0]})))
    assert found.labels_.names == ("is_no", "is_yes")
    assert np.mean(found.predict(X).argmax(1) == (X[:, 0] > 0)) > 0.9


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        (np.array(["a", "b"] * 20), {}, "y is <U1, not numbers; .* of classes OneHotEncoder makes distributions"),
        (2 * D, {}, r"y: distribution row 0 sums to 2, not 1 \(40 such rows\); divide rows by their sums"),
        (D, {"labels": LabelSpace.nominal("abc")}, "y has 4 columns and labels are 3; give one label per column"),
        (D[:, :, None], {}, r"y has shape \(40, 4, 1\)|dim 3"),
        (VALUES, {"labels": LabelSpace.nominal("abc")}, "needs labels with values"),
        (VALUES, {"sigma": -1.0}, "LDLRegressor.sigma -1.0 must be above 0"),
        (np.where(np.arange(40) == 3, np.nan, VALUES), {}, "y contains NaN"),
    ],
)
def test_other_targets_are_refused(target: np.ndarray, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LDLRegressor(MeanPredictor(), **options).fit(X, target)


@pytest.mark.parametrize("ask", [LDLRegressor.score, LDLRegressor.measure])
def test_other_truths_are_refused(ask: Any) -> None:
    estimator = LDLRegressor(MeanPredictor()).fit(X, D)
    with pytest.raises(LDLError, match=r"y has shape \(40,\); give distributions, \(N, 4\)"):
        ask(estimator, X, VALUES)
    with pytest.raises(LDLError, match=r"y: distribution row 3 sums to nan, not 1 \(1 such rows\)"):
        ask(estimator, X, np.where(np.arange(40)[:, None] == 3, np.nan, D))


@pytest.mark.parametrize("unknown", [None, pd.NA], ids=str)
def test_rows_of_no_group_are_refused(unknown: Any) -> None:
    groups = np.array(["a", "b"] * 20, dtype=object)
    LDLRegressor(MeanPredictor()).fit(X, D, groups=groups)
    groups[3] = unknown
    with pytest.raises(LDLError, match="groups: the group of row 3 is missing or no name, .*; give every row one"):
        LDLRegressor(MeanPredictor()).fit(X, D, groups=groups)


@pytest.mark.parametrize("level", [[0.5, 0.9], 1.0], ids=str)
@pytest.mark.parametrize(("ask", "target"), [("predict_interval", VALUES), ("predict_set", D)])
def test_a_level_is_one_number(ask: str, target: np.ndarray, level: Any) -> None:
    estimator = LDLRegressor(MeanPredictor()).fit(X, target)
    with pytest.raises(LDLError, match=r"level .* must be above 0 and below 1, such as 0.9; give one number"):
        getattr(estimator, ask)(X, level)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epochs": 0}, "LDLRegressor.epochs 0 must be at least 1"),
        ({"conformal": "split"}, "LDLRegressor.conformal 'split' needs held-out rows; set val_fraction"),
        ({"conformal": "crosss"}, "LDLRegressor.conformal 'crosss' must be one of split, cross"),
        ({"calibrate": True}, "LDLRegressor.calibrate needs held-out rows"),
        ({"encoder": "square"}, "LDLRegressor.encoder 'square' must be one of gaussian, triangle"),
        ({"accelerator": "abacus"}, "abacus"),
        ({"labels": ["a", "b"]}, r"LDLRegressor.labels \['a', 'b'\] must be a LabelSpace, such as"),
    ],
)
def test_other_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LDLRegressor(MeanPredictor(), **options).fit(X, D)
