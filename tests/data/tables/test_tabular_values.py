"""Tables of values and groups: what is read and how it is cut."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from ldl.data import TabularValues
from ldl.data.tables.reading import read_values
from ldl.errors import LDLError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = RNG.integers(0, 30, 40)
G = np.repeat([f"p{number}" for number in range(8)], 5)


def save(folder: Path, kind: str, **changed: Any) -> Path:
    """The table as a file of one kind."""
    columns = {"features": X, "value": Y.astype(np.uint8), "group": G, **changed}
    path = folder / f"table.{kind}"
    if kind == "npz":
        np.savez(path, **columns)
    else:
        rows = zip(columns["value"], columns["group"], columns["features"])
        lines = [",".join([str(v), str(g), *map(repr, map(float, x))]) for v, g, x in rows]
        path.write_text("\n".join(["age,person,a,b,c", *lines]) + "\n")
    return path


def made(path: Path, **options: Any) -> TabularValues:
    data = TabularValues(str(path), **{"folds": 4, **options})
    data.setup()
    return data


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_features_values_and_groups_are_read(tmp_path: Path, kind: str) -> None:
    table = read_values(save(tmp_path, kind))
    np.testing.assert_array_equal(table.features, X)
    np.testing.assert_array_equal(table.target, Y.astype(float))
    assert table.groups is not None and table.groups.tolist() == G.tolist()


def test_labels_reach_from_the_lowest_to_the_highest_value(tmp_path: Path) -> None:
    data = made(save(tmp_path, "npz"), step=5, unit="years", sigma=3.0)
    assert data.labels.axes == (tuple(float(v) for v in range(0, 31, 5)),)
    expected = data.labels.encode(torch.tensor(Y, dtype=torch.float32), 3.0)
    torch.testing.assert_close(data.columns["target"], expected)
    assert data.columns["value"].tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({}, {"step": 1e-9}, r"there would be .* labels, more than 10,000; widen data.step"),
        ({}, {"step": 1e-320}, r"there would be inf labels, more than 10,000; widen data.step"),
        ({}, {"low": -1e90}, r"labels reach from -1e\+90 to \d+, and half of the values lie within"),
        ({"value": np.where(np.arange(40) == 7, np.nan, Y)}, {}, "values row 7"),
        ({"value": Y[:-1]}, {}, "40 rows of features but 39 values"),
        ({}, {"high": 3}, "outside the labels 1..3"),
        ({}, {"value_key": "agee"}, "no key 'agee'"),
        ({"features": np.where(X[3, 1] == X, np.inf, X)}, {}, "features row 3, column 1"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, changed: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        made(save(tmp_path, "npz", **changed), **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no value under"),
        ("age,a\n", "needs rows, feature columns, and a column of values; it has 0 rows"),
        ("age,label:x,a,label:y\n1,2,3,4\n", "'label:x', 'label:y' are of a distribution, no features; .*TabularLDL"),
        ("age;a;b\n1;2;3,5\n", r"semicolons stand between its fields; .*sep=';'"),
        ("age\ta\tb\n1\t2\t3\n", r"tabs stand between its fields; .*sep='\\t'"),
    ],
)
def test_bad_csv_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(LDLError, match=message):
        read_values(path)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_reserved_names_that_are_given_are_taken(kind: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"label:age": Y, "Person": G, "a": X[:, 0], "group": X[:, 1]})
    write = {"csv": partial(table.to_csv, index=False), "parquet": table.to_parquet}[kind]
    write(tmp_path / f"t.{kind}")
    options = {"target_key": "label:age", "group_key": "Person"}
    found = read_values(tmp_path / f"t.{kind}", **options)
    assert found.columns == ["a"] and found.groups is not None and len(np.unique(found.groups)) == 8
