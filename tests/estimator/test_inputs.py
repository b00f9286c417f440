"""Targets, weights and groups: what they mean, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import BoostedTrees, MaxEnt, MeanPredictor, StructRF
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


def test_names_of_columns_are_labels_as_in_a_table() -> None:
    frame = pd.DataFrame(D, columns=["label: d", " c", "label:b ", "a"])
    known = LDLRegressor(MeanPredictor(), labels=LabelSpace.nominal("abcd")).fit(X, frame)
    np.testing.assert_allclose(known.predict(X)[0], D.mean(0)[::-1], atol=1e-6)
    assert LDLRegressor(MeanPredictor()).fit(X, frame).labels_.names == ("d", "c", "b", "a")
    with pytest.raises(LDLError, match="y: there are several columns 'a'; give each another name"):
        LDLRegressor(MeanPredictor()).fit(X, frame.set_axis(list("abca"), axis=1))


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


@pytest.mark.parametrize("order", [[2, 0, 3, 1], [0, 1, 2, 3], [3, 2, 1, 0]])
@pytest.mark.parametrize("trained", [[1, 3, 0, 2], [0, 1, 2, 3]])
def test_numbers_name_the_columns_of_distributions(trained: list[int], order: list[int]) -> None:
    frame = pd.DataFrame(D)
    estimator = LDLRegressor(MaxEnt(l2=1e-3)).fit(X, frame[trained])
    assert estimator.labels_.names == tuple(map(str, trained))
    assert estimator.score(X, frame[order]) == estimator.score(X, frame[trained])
    named = LDLRegressor(MaxEnt(l2=1e-3), labels=estimator.labels_).fit(X, frame[order])
    np.testing.assert_allclose(named.predict(X), estimator.predict(X), atol=1e-6)
    # Columns without names keep their order.
    unnamed = LDLRegressor(MeanPredictor(), labels=LabelSpace.nominal("wxyz")).fit(X, frame)
    np.testing.assert_allclose(unnamed.predict(X)[0], D.mean(0), atol=1e-6)


@pytest.mark.parametrize("trained", [[1, 2, 0], [0, 1, 2]])
def test_numbers_name_the_columns_of_features(trained: list[int]) -> None:
    frame = pd.DataFrame(X)
    estimator = LDLRegressor(StructRF(trees=3)).fit(frame[trained], D)
    wanted = estimator.predict(frame[trained])
    for order in ([2, 0, 1], [0, 1, 2], [1, 2, 0]):
        assert np.array_equal(estimator.predict(frame[order]), wanted)
        assert np.array_equal(estimator.predictor_.predict(frame[order]).distribution, wanted)
    assert np.array_equal(estimator.predict(X[:, trained]), wanted)
    unnamed = LDLRegressor(StructRF(trees=3)).fit(X, D)
    assert np.array_equal(unnamed.predict(frame[[2, 0, 1]]), unnamed.predict(X))


def test_an_array_with_named_fields_is_a_frame() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = LDLRegressor(StructRF(trees=3)).fit(table, D)
    fields = table.to_records(index=False)
    assert np.array_equal(estimator.predict(fields), estimator.predict(table))
    reordered = table[["c", "a", "b"]].to_records(index=False)
    assert np.array_equal(estimator.predictor_.predict(reordered).distribution, estimator.predict(table))
    named = pd.DataFrame(D, columns=list("wxyz"))
    assert LDLRegressor(MeanPredictor()).fit(X, named.to_records(index=False)).labels_.names == tuple("wxyz")


def test_masked_entries_are_missing() -> None:
    hidden = np.zeros(len(X), bool)
    hidden[5] = True
    estimator = LDLRegressor(MeanPredictor())
    table = np.ma.array(X, mask=np.repeat(hidden[:, None], 3, 1))
    for given in (table, list(table)):
        with pytest.raises(ValueError, match="X contains NaN"):
            estimator.fit(given, D)
    with pytest.raises(ValueError, match="y contains NaN"):
        estimator.fit(X, np.ma.array(D, mask=np.repeat(hidden[:, None], 4, 1)))
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        estimator.fit(X, D, np.ma.array(np.arange(40), mask=hidden))
    for groups in (np.arange(40), np.arange(40).astype(str)):
        with pytest.raises(ValueError, match="group of row 5 is missing"):
            estimator.fit(X, D, groups=np.ma.array(groups, mask=hidden))
    gaps = LDLRegressor(BoostedTrees(rounds=2)).fit(table, D)
    filled = np.where(hidden[:, None], np.nan, X)
    assert np.array_equal(gaps.predict(table), LDLRegressor(BoostedTrees(rounds=2)).fit(filled, D).predict(filled))
    unhidden = np.ma.array(X, mask=False)
    assert np.array_equal(estimator.fit(unhidden, D).predict(unhidden), estimator.fit(X, D).predict(X))


def test_an_index_in_another_order_is_refused() -> None:
    frame, target, weight = pd.DataFrame(X), pd.Series(VALUES), pd.Series(np.ones(40))
    estimator = LDLRegressor(MeanPredictor()).fit(frame, target, weight)
    shuffled = target.sample(frac=1, random_state=0)
    with pytest.raises(LDLError, match=r"y has the index of X in another order, .* y\.loc\[X\.index\]"):
        estimator.fit(frame, shuffled)
    with pytest.raises(LDLError, match="sample_weight has the index of X in another order"):
        estimator.fit(frame, target, weight[::-1])
    with pytest.raises(LDLError, match="sample_weight has the index of y in another order"):
        estimator.score(X, target, weight[::-1])
    with pytest.raises(LDLError, match="groups has the index of X in another order"):
        estimator.fit(frame, target, groups=shuffled)
    # Any other index is ignored, as in scikit-learn.
    other = estimator.fit(frame, target.set_axis(range(100, 140)))
    assert np.array_equal(other.predict(X), estimator.fit(X, VALUES).predict(X))
    assert estimator.score(frame[10:], target[10:].reset_index(drop=True)) == estimator.score(X[10:], VALUES[10:])
