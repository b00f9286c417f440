"""Data frames with columns of text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fakes.comments import LABELS, comments
from sklearn.base import clone

pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")

from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import Softmax
from ldl.inference import Predictor

TABLE, VOTES = comments(80)
Y = pd.crosstab(VOTES["id"], VOTES["label"], normalize="index")[list(LABELS)].to_numpy()
X = TABLE[["comment", "length"]]


@pytest.mark.parametrize("text_columns", ["comment", ["comm*"], "auto"])
def test_a_column_of_text_is_learned(text_columns: str | list[str], tmp_path: Path) -> None:
    fitted = clone(LDLRegressor(Softmax(), text_columns=text_columns, epochs=10)).fit(X[:60], Y[:60])
    assert fitted.n_features_in_ == 2 and fitted.predictor_.task.input_shape == (769,)
    predicted = fitted.predict(X[60:])
    assert (predicted.argmax(1) == Y[60:].argmax(1)).mean() >= 0.75
    np.testing.assert_allclose(fitted.predict(X[["length", "comment"]][60:].astype(object)[list(X)]), predicted)
    fitted.save(tmp_path / "a.ckpt")
    np.testing.assert_allclose(Predictor.from_checkpoint(tmp_path / "a.ckpt").predict(X[60:]).distribution, predicted)


def test_tokens_are_limited() -> None:
    fitted = LDLRegressor(Softmax(), text_columns="comment", text_tokens=1, epochs=1).fit(X, Y)
    one, two = (fitted.predict(X[:1].assign(comment=text)) for text in ("rain", "rain and a long walk home"))
    np.testing.assert_allclose(one, two)


def test_text_needs_a_frame_with_the_column() -> None:
    with pytest.raises(LDLError, match="text_columns names columns of a data frame, and X is none"):
        LDLRegressor(Softmax(), text_columns="comment").fit(np.ones((80, 2)), Y)
    with pytest.raises(LDLError, match="X has no column 'remark'"):
        LDLRegressor(Softmax(), text_columns="remark").fit(X, Y)
    with pytest.raises(LDLError, match=r"80 different texts .*or read it as text with text_columns=\['comment'\]"):
        LDLRegressor(Softmax()).fit(X, Y)
