"""Data frames with text, categories, truth values, dates and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes.films import RATINGS, films, save
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import ldl.heads
from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.estimator.parameters import make_head
from ldl.heads import BoostedTrees, MaxEnt, Mirrored, Pool, Scaled, Softmax, StructRF, Trained
from ldl.inference import Predictor

TABLE = films(80)[:78]
DAYS = np.random.default_rng(0).integers(0, 900, 78)
X = TABLE[["year", "length", "budget", "mpaa"]].assign(
    mpaa=TABLE["mpaa"].replace("", None).astype("category"),
    length=TABLE["length"].astype("Int64").where(TABLE["length"] > 80),
    action=TABLE["Action"].astype(bool),
    day=pd.Timestamp("2020-01-01") + pd.to_timedelta(DAYS, "D"),
    language=np.where(DAYS % 3 == 0, "en", "de"),
)
Y = TABLE[RATINGS].div(TABLE[RATINGS].sum(axis=1), axis=0)
SMALL = StructRF(trees=3, depth=3)
GIVEN = {
    "Pool": Pool([StructRF(trees=2), MaxEnt(l2=1.0)], folds=2),
    "Mirrored": Mirrored(SMALL),
    "Scaled": Scaled(SMALL),
    "Trained": Trained(Softmax()),
    "BoostedTrees": BoostedTrees(rounds=2),
}
"""Heads that have no defaults, or slow ones."""


def heads() -> list[Any]:
    """All heads that take rows."""
    found = []
    for name in ldl.heads.__all__:
        try:
            found.append(pytest.param(make_head(GIVEN.get(name) or getattr(ldl.heads, name)()), id=name))
        except (LDLError, TypeError):
            continue  # of images or bags, or around another head
    return found


@pytest.mark.parametrize("head", heads())
def test_every_head_of_rows(head: Any) -> None:
    fitted = LDLRegressor(head, epochs=1).fit(X, Y)
    found = fitted.predict(X.assign(language="fr"))
    assert found.shape == (78, 10) and np.isfinite(found).all()
    assert list(fitted.feature_names_in_) == list(X) and fitted.n_features_in_ == 7


def test_equals_the_table_on_disk(tmp_path: Path) -> None:
    table = X.rename(columns={"language": "tongue"}).assign(**{f"label:{name}": Y[name] for name in RATINGS})
    data = TabularLDL(str(save(tmp_path, table.assign(action=table["action"].astype(int)))), val_fraction=0.0)
    data.setup()
    fitted = LDLRegressor(SMALL).fit(table.iloc[data.split.train, :7], Y.iloc[data.split.train])
    assert data.encoding is not None and fitted.predictor_.task.preprocessing is not None
    assert fitted.predictor_.task.preprocessing["encoding"] == data.encoding.state()


def test_in_pipelines_and_searches(tmp_path: Path) -> None:
    search = GridSearchCV(Pipeline([("model", LDLRegressor(SMALL))]), {"model__head__depth": [1, 4]}, cv=3).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    steps = make_pipeline(FunctionTransformer(lambda frame: frame.drop(columns="day")), LDLRegressor(SMALL))
    assert np.isfinite(cross_val_score(steps, X, Y, cv=3, scoring=LDLRegressor.scorer("kl"))).all()
    model = search.best_estimator_[-1]
    model.save(tmp_path / "a.ckpt")
    found = Predictor.from_checkpoint(tmp_path / "a.ckpt").predict(X[X.columns[::-1]]).distribution
    np.testing.assert_array_equal(found, search.predict(X))


def test_calibration_and_values() -> None:
    fitted = LDLRegressor(SMALL, conformal="cross", conformal_folds=3).fit(X, TABLE["year"] / 10)
    assert fitted.predict_interval(X).shape == (78, 2)
    assert LDLRegressor(SMALL, conformal="split", val_fraction=0.3).fit(X, Y).predict_interval is not None
    keeps = LDLRegressor(BoostedTrees(rounds=2)).fit(X, Y).predictor_.task.preprocessing
    assert keeps is not None and "length missing" not in keeps["features"]


def test_a_weight_of_two_is_the_row_twice() -> None:
    weight = np.random.default_rng(1).integers(0, 3, 78)
    texts = X.assign(language=[f"l{k % 35}" for k in range(78)])  # the rarest share a feature
    weighted = LDLRegressor(MaxEnt(l2=1.0)).fit(texts, Y, sample_weight=weight)
    twice = np.repeat(np.arange(78), weight)
    repeated = LDLRegressor(MaxEnt(l2=1.0)).fit(texts.iloc[twice], Y.iloc[twice])
    known = [fitted.predictor_.task.preprocessing for fitted in (weighted, repeated)]
    assert known[0] is not None and known[1] is not None and known[0]["encoding"] == known[1]["encoding"]
    np.testing.assert_allclose(weighted.predict(texts), repeated.predict(texts), atol=1e-4)


def test_what_is_wrong_is_refused() -> None:
    fitted = LDLRegressor(SMALL).fit(X, Y)
    for given, message in (
        (X[X.columns[::-1]], "Feature names must be in the same order"),
        (X.drop(columns="day"), "Feature names seen at fit time, yet now missing"),
        (X.assign(day="some day"), "column 'day' is 'some day', not a date"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.predict(given)
    for table, message in (
        (
            X.assign(name=[f"n{k}" for k in range(78)]),
            "column 'name' holds 78 different texts in 78 rows.* leave it out, or read it as text with text_columns=",
        ),
        (X.assign(length=[np.inf] * 78), "column 'length' is inf in row 0"),
        (X.assign(code="7"), "column 'code' is str '7' and such, not numbers; convert"),
        (X.assign(gap=pd.to_timedelta(DAYS, "D")), "column 'gap' is Timedelta"),
    ):
        with pytest.raises(ValueError, match=message):
            LDLRegressor(SMALL).fit(table, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LDLRegressor(SMALL).fit(X, Y[:-1])


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_columns_of_every_backend_of_pandas_are_the_same(backend: Any) -> None:
    plain = LDLRegressor(SMALL).fit(X, Y)
    frame = X.convert_dtypes(dtype_backend=backend)
    for text in ("language", "mpaa"):
        frame[text] = frame[text].astype("string[pyarrow]" if backend == "pyarrow" else "string").astype(X[text].dtype)
    frame["language"] = X["language"].convert_dtypes(dtype_backend=backend)
    fitted = LDLRegressor(SMALL).fit(frame, Y.convert_dtypes(dtype_backend=backend))
    assert np.array_equal(fitted.predict(X), plain.predict(X))
    assert np.array_equal(plain.predict(frame), plain.predict(X))
    assert np.array_equal(fitted.predictor_.predict(frame).distribution, plain.predict(X))


def test_a_period_is_the_date_of_its_start() -> None:
    months = X.assign(day=X["day"].dt.to_period("M"))
    fitted = LDLRegressor(SMALL).fit(months, Y)
    starts = months.assign(day=months["day"].dt.to_timestamp())
    assert np.array_equal(fitted.predict(months), LDLRegressor(SMALL).fit(starts, Y).predict(starts))
    assert np.array_equal(fitted.predict(months.astype({"day": object})), fitted.predict(starts))
    LDLRegressor(SMALL).fit(X, Y, groups=months["day"])


def test_a_length_of_time_names_its_conversion() -> None:
    with pytest.raises(LDLError, match="column 'age' is Timedelta '1 days 00:00:00' and such.*total_seconds"):
        LDLRegressor(SMALL).fit(pd.DataFrame({"age": pd.to_timedelta(DAYS + 1 - DAYS, "D"), "x": DAYS}), Y)
