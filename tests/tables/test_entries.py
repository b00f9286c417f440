"""One rule for what an entry of a table is, held in every format and on every path."""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.io
from pyarrow import parquet

from ldl.bags.bags import read_bags
from ldl.data.tables.feature_columns import FeatureColumns
from ldl.data.tables.reading import read_table, read_values
from ldl.deploy.demo_page import read_pasted
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.estimator.inputs import read_groups, read_rows
from ldl.inference.inputs import _owned
from ldl.tables.entries import as_matrix, map_distinct, spelling

Entries = list[Any]
NAN = np.nan


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))


def saved_csv(folder: Path, columns: dict[str, Entries], ending: str = "csv") -> Path:
    rows = zip(*([*map(field, entries)] for entries in columns.values()))
    text = "\n".join([",".join(columns), *(",".join(f'"{entry}"' for entry in row) for row in rows)]) + "\n"
    path = folder / f"t.{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    return path


def field(entry: Any) -> str:
    return "" if entry is None else str(entry)


def saved_arrays(folder: Path, columns: dict[str, Entries], kind: str = "npz") -> Path:
    arrays = {name: np.array(entries) for name, entries in columns.items()}
    arrays = {"features": arrays.pop("x").reshape(3, -1), **arrays}
    if kind == "npz":
        np.savez(folder / "t.npz", **arrays)
    elif kind == "mat":
        scipy.io.savemat(folder / "t.mat", {name: array.reshape(3, -1) for name, array in arrays.items()})
    else:
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        return folder
    return folder / f"t.{kind}"


def saved_parquet(folder: Path, columns: dict[str, Entries]) -> Path:
    parquet.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


Save = Callable[..., Path]
FILES: dict[str, Save] = {
    "csv": saved_csv,
    "csv.gz": lambda folder, columns: saved_csv(folder, columns, "csv.gz"),
    "npz": saved_arrays,
    "npy": lambda folder, columns: saved_arrays(folder, columns, "npy"),
    "parquet": saved_parquet,
}
AGE = {"age": [1.0, 2.0, 3.0]}


def frame_of(entries: Entries) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(entries)})


def estimator_reads(X: Any) -> np.ndarray:
    return read_rows(LDLRegressor(), X, np.arange(3.0), missing=True)[0]


def predicting(path: Path) -> np.ndarray:
    return FeatureColumns(1, ["x"], missing=True).of_file(path)


def pasted(folder: Path, entries: Entries) -> Path:
    (folder / "pasted.csv").write_text("\n".join(["1", *(f'"{field(entry)}"' for entry in entries)]))
    return folder / "pasted.csv"


FEATURES: dict[str, Callable[[Path, Entries], np.ndarray]] = {
    **{
        f"training {name}": lambda folder, entries, save=save: (
            read_values(save(folder, {"x": entries, **AGE}), missing=True).features
        )
        for name, save in FILES.items()
    },
    **{
        f"Predictor {name}": lambda folder, entries, save=save: predicting(save(folder, {"x": entries}))
        for name, save in FILES.items()
        if name != "npy"
    },
    "distributions csv": lambda folder, entries: (
        read_table(saved_csv(folder, {"x": entries, "label:a": [1, 1, 1]}), missing=True).features
    ),
    "Predictor frame": lambda folder, entries: FeatureColumns(1, ["x"], missing=True).of_frame(frame_of(entries)),
    "Predictor list": lambda folder, entries: FeatureColumns(1, missing=True).of_array([[entry] for entry in entries]),
    "estimator frame": lambda folder, entries: estimator_reads(frame_of(entries)),
    "estimator list": lambda folder, entries: estimator_reads([[entry] for entry in entries]),
    "estimator pyarrow": lambda folder, entries: estimator_reads(pa.table({"x": entries})),
    "demo": lambda folder, entries: np.asarray(read_pasted(pasted(folder, entries)))[1:],
}
TEXT = ("csv", "demo")
"""Places whose entries are all text."""
KINDS: dict[str, tuple[Entries, list[float] | None, list[float] | None]] = {
    "boolean": ([True, False, True], [1, 0, 1], [1, 0, 1]),
    "missing": ([1, None, 3], [1, NAN, 3], [1, NAN, 3]),
    "missing boolean": ([True, None, False], [1, NAN, 0], [1, NAN, 0]),
    "decimal": ([Decimal("1.5"), Decimal(2), Decimal(3)], [1.5, 2, 3], [1.5, 2, 3]),
    "large integer": ([2**53 + 1, 1, 2], [2.0**53, 1, 2], [2.0**53, 1, 2]),
    "text that is a number": (["1", " 2e0 ", "+.3"], None, [1, 2, 0.3]),
    "text that is missing": (["1", "NA", "3"], None, [1, NAN, 3]),
    "text": (["1", "high", "3"], None, None),
    "underscore": (["2024_01", "1", "2"], None, None),
    "another script": (["٣", "1", "2"], None, None),
    "full width": (["１２", "1", "2"], None, None),
    "hexadecimal": (["0x10", "1", "2"], None, None),
    "decimal comma": (["1,5", "1", "2"], None, None),
    "date": ([datetime.datetime(2024, 1, day) for day in (1, 2, 3)], None, None),
    "duration": ([datetime.timedelta(days=day) for day in (1, 2, 3)], None, None),
    "infinity": ([1.0, np.inf, 3.0], None, None),
    "nested": ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], None, None),
    "object": ([{"a": 1}, {"a": 2}, {"a": 3}], None, None),
}
PICKLED = ("missing", "missing boolean", "decimal", "object")
"""Kinds that numpy pickles."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", FEATURES)
def test_a_feature_is_the_same_everywhere(place: str, kind: str, tmp_path: Path) -> None:
    entries, typed, text = KINDS[kind]
    expected = text if any(name in place for name in TEXT) else typed
    if kind == "nested" and ("np" in place or "list" in place or "demo" in place):
        pytest.skip("a matrix, or a line of two fields")
    if kind in PICKLED and "np" in place:
        expected = None
    if kind == "date" and place in ("estimator frame", "estimator pyarrow"):
        assert FEATURES[place](tmp_path, entries)["x"].dtype.kind == "M"  # columns of frames may be dates
        return
    if expected is not None:
        found = FEATURES[place](tmp_path, entries)
        np.testing.assert_array_equal(np.asarray(found, np.float64), np.array(expected)[:, None])
        return
    with pytest.raises(ValueError) as refused:
        FEATURES[place](tmp_path, entries)
    assert "\n" not in str(refused.value)
    if "np" in place and kind in PICKLED:
        assert "features" in str(refused.value) and ".astype(" in str(refused.value)


NO_NAMES: dict[str, Any] = {
    **{word: word for word in ("NA", "n/a", "#N/A", "<NA>", "NaN", "null", "None", "?", "  ")},
    "no entry": None,
}
GROUPS: dict[str, Callable[[Path, Entries], Any]] = {
    **{
        f"training {name}": lambda folder, entries, save=save: (
            read_values(save(folder, {"x": [1.0, 2.0, 3.0], **AGE, "group": entries})).groups
        )
        for name, save in FILES.items()
    },
    "distributions csv": lambda folder, entries: (
        read_table(saved_csv(folder, {"x": [1, 2, 3], "label:a": [1, 1, 1], "person": entries})).groups
    ),
    "training mat": lambda folder, entries: _cells(folder, entries),
    "bags csv": lambda folder, entries: np.array(
        read_bags(saved_csv(folder, {"bag": entries, "label": [1, 1, 1], "x": [1, 2, 3]})).names
    ),
    "Predictor bags csv": lambda folder, entries: np.array(
        _owned(saved_csv(folder, {"bag": entries, "x": [1, 2, 3]}), FeatureColumns(1, ["x"]))[0]
    ),
    "Predictor bags frame": lambda folder, entries: np.array(
        _owned(pd.DataFrame({"bag": entries, "x": [1, 2, 3]}), FeatureColumns(1, ["x"]))[0]
    ),
    "estimator": lambda folder, entries: read_groups(np.array(entries, object), np.zeros(3)),
    "estimator series": lambda folder, entries: read_groups(pd.Series(entries), np.zeros(3)),
}


def _cells(folder: Path, entries: Entries) -> Any:
    cells = np.empty((3, 1), object)
    cells[:, 0] = [np.empty((0, 0)) if entry is None else entry for entry in entries]
    scipy.io.savemat(folder / "t.mat", {"features": np.ones((3, 1)), "age": np.ones(3), "group": cells})
    return read_values(folder / "t.mat").groups


@pytest.mark.parametrize("kind", NO_NAMES)
@pytest.mark.parametrize("place", GROUPS)
def test_what_is_missing_names_no_group(place: str, kind: str, tmp_path: Path) -> None:
    with pytest.raises(LDLError) as refused:
        GROUPS[place](tmp_path, ["b", NO_NAMES[kind], "a"])
    said = str(refused.value)
    numpy = kind == "no entry" and ("npz" in place or "npy" in place)
    assert (".astype(str)" if numpy else "give every row one") in said and "\n" not in said


@pytest.mark.parametrize("place", GROUPS)
def test_a_group_is_named_by_text_without_blanks(place: str, tmp_path: Path) -> None:
    found = GROUPS[place](tmp_path, [" b", "a", "b "])
    numbers = np.unique(np.ravel(found), return_inverse=True)[1].tolist()
    assert numbers in ([1, 0, 1], [1, 0])  # of bags each name once


def test_mixed_names_of_groups_are_text() -> None:
    given = np.array([1, "a", 1.0, "1", True, datetime.date(2024, 1, 2), Decimal(1)], object)
    found = read_groups(given, np.zeros(7))
    assert found is not None and found.tolist() == ["1", "a", "1", "1", "True", "2024-01-02", "1"]
    for wrong in (1j, [1, 2], {"a": 1}, np.inf):
        entries = np.empty(2, object)
        entries[:] = [1, wrong]
        if wrong is not np.inf:
            with pytest.raises(LDLError, match="row 1 is missing or no name"):
                read_groups(entries, np.zeros(2))
        else:
            with pytest.raises(LDLError, match="row 1 is missing or no name, 'inf'"):
                read_groups(np.array([1, wrong]), np.zeros(2))


def test_an_archive_of_csv_that_is_damaged_or_too_large_is_refused(tmp_path: Path) -> None:
    path = saved_csv(tmp_path, {"x": [1, 2, 3], **AGE}, "csv.gz")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LDLError, match="t.csv.gz cannot be read"):
        read_values(path)
    path.write_text("x,age\n1,2\n")
    with pytest.raises(LDLError, match="t.csv.gz cannot be read: Not a gzipped file"):
        read_values(path)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([1, 1.0, np.float32(1), np.int8(1), Decimal("1.00"), "1", " 1.0 ", b"1"], "1"),
        ([1234567.0, np.float64(1234567), "1234567"], "1234567"), ([-1, -1.0, "-1.0"], "-1"), ([-0.0, "-0.0"], "0"),
        ([0.5, Decimal("0.50"), np.float32(0.5)], "0.5"), ([1e-7, Decimal("1E-7")], "0.0000001"),
        ([1e22], "1" + "0" * 22),
        ([True, np.True_, "True"], "True"), (["007"], "007"), (["1.10"], "1.10"), (["1e3"], "1e3"), (["+49"], "+49"),
        ([None, NAN, pd.NA, pd.NaT, "", " "], ""), (["NA"], "NA"), ([float("inf")], "inf"), ([(1, 2)], "(1, 2)"),
    ],
)  # fmt: skip
def test_a_name_has_one_spelling(entries: Entries, text: str) -> None:
    assert {spelling(entry) for entry in entries} == {text}


@pytest.mark.parametrize(
    ("entries", "text"),
    [(["1.10", 1.1, "+1.1", "1.1e0"], "1.1"), (["1e3", 1000], "1000"), ([".5", "0.50"], "0.5"), (["01"], "01"),
     (["1_0"], "1_0"), (["1e999999"], "1e999999")],
)  # fmt: skip
def test_a_label_that_is_a_number_has_one_spelling(entries: Entries, text: str) -> None:
    assert {spelling(entry, numeral=True) for entry in entries} == {text}


def test_a_function_is_computed_once_for_equal_entries() -> None:
    computed: list[Any] = []

    def double(text: Any) -> Any:
        computed.append(text)
        return None if text is None or text != text else 2 * text

    assert map_distinct(double, pd.Series(["b", "a", "b", None, "a"])).tolist() == ["bb", "aa", "bb", None, "aa"]
    assert len(computed) == 3
    assert map_distinct(double, []).tolist() == []


def test_a_frame_of_numbers_is_a_matrix_in_rows() -> None:
    matrix = as_matrix(pd.DataFrame({"x": [1, 2], "y": [0.5, NAN], "z": [True, False]}))
    assert matrix.flags.c_contiguous and matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, [[1, 0.5, 1], [2, NAN, 0]])
