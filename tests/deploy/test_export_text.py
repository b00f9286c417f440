"""An ONNX file of a table with columns of text takes the numbers of tokens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from fakes.comments import comments

pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")

from ldl.data.text import find_encoder
from ldl.deploy.export import export
from ldl.deploy.export_columns import pad_tokens
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import Softmax
from ldl.task import Task

TABLE, VOTES = comments(60)
X = TABLE[["comment", "length"]].assign(
    reply=[None if number % 4 == 0 else f"a reply of {number} words" for number in range(60)],
    place=["park", "shop", "bridge"] * 20,
)
Y = pd.crosstab(VOTES["id"], VOTES["label"], normalize="index").to_numpy()


def trained(table: pd.DataFrame, text_columns: list[str], tokens: int = 512) -> LDLRegressor:
    return LDLRegressor(Softmax(), text_columns=text_columns, text_tokens=tokens, epochs=2).fit(table, Y)


def ids(texts: pd.Series) -> np.ndarray:
    return pad_tokens(find_encoder("wordllama").token_ids(list(texts.fillna(""))))  # type: ignore[attr-defined]


@pytest.mark.parametrize("tokens", [512, 5])
def test_it_answers_as_the_predictor(tokens: int, tmp_path: Path) -> None:
    fitted = trained(X, ["comment", "reply"], tokens)
    done = export(fitted.predictor_.task, tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.apart == 0
    assert done.parity.largest <= 3e-6  # sums of 768 float32 products in another order
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    inputs = {
        "numbers": X[["length"]].to_numpy(float),
        "texts": X[["place"]].to_numpy(object),
        "tokens_0": ids(X["comment"]),
        "tokens_1": ids(X["reply"]),
    }
    np.testing.assert_allclose(session.run(None, inputs)[0], fitted.predict(X), atol=3e-6)
    more = inputs | {"tokens_0": np.pad(inputs["tokens_0"], ((0, 0), (0, 9)), constant_values=-1)}
    np.testing.assert_allclose(session.run(None, more)[0], fitted.predict(X), atol=3e-6)
    steps = json.loads(session.get_modelmeta().custom_metadata_map["preprocessing"])
    assert steps["columns"]["tokens"] == {"tokens_0": "comment", "tokens_1": "reply"}
    assert "padded with -1" in steps["before"]


def test_text_alone_and_rows_without_any(tmp_path: Path) -> None:
    fitted = trained(X[["reply"]], ["reply"])
    export(fitted.predictor_.task, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    empty = pd.DataFrame({"reply": [None, "", " "]})
    for tokens in (np.full((3, 4), -1), np.empty((3, 0), np.int64)):
        np.testing.assert_allclose(session.run(None, {"tokens_0": tokens})[0], fitted.predict(empty), atol=1e-6)


def test_other_encoders_are_one_line(tmp_path: Path) -> None:
    task = trained(X[["comment"]], ["comment"]).predictor_.task
    assert isinstance(task, Task)
    task.preprocessing["encoding"][0]["text"]["encoder"] = "mini"
    with pytest.raises(LDLError, match="columns of text, 'comment', can be exported with the encoder wordllama alone"):
        export(task, tmp_path / "model.onnx")
