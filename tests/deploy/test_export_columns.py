"""An ONNX file of a table with text, dates and gaps takes the columns as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from fakes.films import RATINGS, films, save
from fakes.paths import ROOT

from ldl.data.tables.columns import Encoding, typed
from ldl.deploy.export import export
from ldl.estimator import LDLRegressor
from ldl.heads import BoostedTrees, MaxEnt, StructRF
from ldl.inference import Predictor

TABLE = films(90)[:88]
X = TABLE[["year", "budget", "mpaa"]].assign(
    day=pd.date_range("2020-01-01", periods=88).where(TABLE["Short"] == 0),
    language=[f"l{number % 40}" for number in range(88)],
)


Y = TABLE[RATINGS].div(TABLE[RATINGS].sum(axis=1), axis=0)


@pytest.mark.parametrize(
    "head",
    [
        MaxEnt(l2=1.0),
        pytest.param(StructRF(trees=3), marks=pytest.mark.slow),
        pytest.param(BoostedTrees(rounds=2), marks=pytest.mark.slow),
    ],
    ids=lambda h: type(h).__name__,
)
def test_it_answers_as_the_predictor(head: Any, tmp_path: Path) -> None:
    fitted = LDLRegressor(head).fit(X, Y)
    done = export(fitted.predictor_.task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.apart == 0 and done.parity.largest <= 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    table = X.assign(language="new")
    day = table["day"].dt
    numbers = [table["year"], table["budget"], day.year, day.month, day.day, day.day_of_week]
    inputs = {
        "numbers": np.stack([column.to_numpy(float) for column in numbers], 1),
        "texts": table[["mpaa", "language"]].to_numpy(object),
    }
    distribution = session.run(None, inputs)[0]
    np.testing.assert_allclose(distribution, fitted.predict(table), atol=1e-5)
    meta = session.get_modelmeta()
    assert meta.producer_name == "ldl"
    dates = [f"day {name}" for name in ("year", "month", "day", "weekday")]
    columns = json.loads(meta.custom_metadata_map["preprocessing"])["columns"]
    assert columns == {"numbers": ["year", "budget", *dates], "texts": ["mpaa", "language"]}


@pytest.mark.parametrize("columns", [["mpaa"], ["budget"], ["mpaa", "year"]], ids=str)
def test_any_columns(columns: list[str], tmp_path: Path) -> None:
    done = export(LDLRegressor(MaxEnt(l2=1.0)).fit(X[columns], Y).predictor_.task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.apart == 0
    assert Encoding.fit(typed(X[columns], "X"), True).names


@pytest.mark.slow
def test_the_example_reads_text(tmp_path: Path) -> None:
    fitted = LDLRegressor(MaxEnt(l2=1.0)).fit(X.drop(columns="day"), Y)
    fitted.save(tmp_path / "a.ckpt")
    export(tmp_path / "a.ckpt", tmp_path / "model.onnx")
    path = save(tmp_path, X[:3])
    script = [sys.executable, str(ROOT / "docs/snippets/without_torch.py"), str(tmp_path / "model.onnx"), str(path)]
    lines = subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines()
    best = Predictor.from_checkpoint(tmp_path / "a.ckpt").predict(path).distribution
    assert lines == [f"row {k}: {RATINGS[row.argmax()]} with {row.max():.0%}" for k, row in enumerate(best)]
