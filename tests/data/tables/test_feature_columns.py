"""The features of a trained model among named and unnamed columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ldl.data.tables.columns import Encoding
from ldl.data.tables.feature_columns import FeatureColumns
from ldl.errors import LDLError

NAMED = FeatureColumns(2, ["a", "b"])


def test_columns_are_found_by_name_in_any_order() -> None:
    assert NAMED.pick(["label:x", "b", "other", "a"], "t") == [3, 1]
    frame = pd.DataFrame({"b": [1], "other": ["text"], "a": [2]})
    np.testing.assert_array_equal(NAMED.of_frame(frame), [[2, 1]])


@pytest.mark.parametrize(
    ("header", "positions"),
    [(["x", "label:y", "w"], [0, 2]), (["1", "0"], [1, 0]), (["2", "1"], [1, 0]), (["label:0", "2", "1"], [2, 1])],
)
def test_columns_without_names_are_taken_in_order_or_by_their_numbers(header: list[str], positions: list[int]) -> None:
    assert FeatureColumns(2).pick(header, "t") == positions


@pytest.mark.parametrize(
    ("columns", "header", "message"),
    [
        (NAMED, ["a", "B"], "t: no column 'b', which the model was trained on; there are 'a', 'B'"),
        (FeatureColumns(1, ["age"]), ["ages"], "no column 'age', .* did you mean 'ages'"),
        (NAMED, ["a", "b", "a"], "t: column 'a' is there twice"),
        (FeatureColumns(2), ["a"], r"t: 1 columns \('a'\), but the model takes 2 features, whose names are unknown"),
        (FeatureColumns(2), ["1", "7"], "its columns are the numbers '1', '7', and the features were trained without"),
    ],
)
def test_columns_that_do_not_fit_are_named(columns: FeatureColumns, header: list[str], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        columns.pick(header, "t")


def test_a_column_twice_matters_for_features_alone() -> None:
    assert NAMED.pick(["other", "a", "b", "other"], "t") == [1, 2]


def test_arrays_have_the_features_of_training() -> None:
    np.testing.assert_array_equal(NAMED.of_array([[1, 2]]), [[1, 2]])
    with pytest.raises(LDLError, match="3 features a row, but the model takes 2 .*; give those of training"):
        NAMED.of_array(np.ones((1, 3)))
    with pytest.raises(LDLError, match=r"transpose them, features\.T"):
        NAMED.of_array(np.ones((2, 5)))


def test_features_are_encoded_as_in_training() -> None:
    frame = pd.DataFrame({"n": [1.0, 2.0], "kind": ["x", "y"]})
    state = Encoding.fit(frame, fill=False).state()
    columns = FeatureColumns.of_model(3, {"encoding": state})
    assert columns.names == ["n", "kind"] and columns.count == 2
    np.testing.assert_array_equal(columns.of_frame(frame[["kind", "n"]]), [[1, 1, 0], [2, 0, 1]])
