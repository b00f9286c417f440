"""Parquet files of one table: their columns, rows and blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from ldl.data.tables.feature_columns import FeatureColumns
from ldl.data.tables.reading import read_values
from ldl.errors import LDLError
from ldl.tables.parquet import Parquet


def test_parts_of_parquet_are_read_in_natural_order_and_below_folders_of_a_hive(tmp_path: Path) -> None:
    for year, part, x in ((9, 2, 2.0), (9, 10, 3.0), (10, 1, 4.0), (9, 1, 1.0)):
        folder = tmp_path / "t" / f"year={year}" / "site=a%20b"
        folder.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({"x": [x], "age": [x]}), folder / f"part-{part}.parquet")
    (tmp_path / "t" / "_temporary").mkdir()
    (tmp_path / "t" / "_temporary" / "part-0.parquet").write_text("")
    table = read_values(tmp_path / "t", group_key="site")
    assert table.columns == ["x", "year"] and table.groups is not None and len(np.unique(table.groups)) == 1
    np.testing.assert_array_equal(table.features, [[1, 9], [2, 9], [3, 9], [4, 10]])
    columns = FeatureColumns(2, ["year", "x"])
    np.testing.assert_array_equal(columns.of_file(tmp_path / "t"), table.features[:, ::-1])
    with pytest.raises(LDLError, match="column 'site' is str 'a b' and such, not numbers"):
        read_values(tmp_path / "t")


def opened(path: Path) -> Parquet:
    table = Parquet.find(path)
    assert table is not None
    return table


def test_only_parquet_files_and_folders_of_them_are_tables(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("x")
    assert Parquet.find(tmp_path) is None and Parquet.find(tmp_path / "t.txt") is None
    pd.DataFrame({"x": [1.5]}).to_parquet(tmp_path / "t.parquet")
    assert opened(tmp_path).header == opened(tmp_path / "t.parquet").header == ["x"]


def test_blocks_are_the_rows_of_all_files_in_order(tmp_path: Path) -> None:
    for number in range(3):
        pd.DataFrame({"x": [number, None], "y": [0.5, number]}).to_parquet(tmp_path / f"{number}.parquet")
    table = opened(tmp_path)
    assert len(table) == 6 and table.rows == [2, 2, 2]
    rows = table.numbers(["y", "x"])
    np.testing.assert_array_equal(np.concatenate(list(table.blocks(["y", "x"]))), rows)
    np.testing.assert_array_equal(rows[:, 0], [0.5, 0, 0.5, 1, 0.5, 2])
    assert np.isnan(rows[1::2, 1]).all()


def test_row_names_of_pandas_are_no_other_column(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1], "y": [2]}, pd.Index(["a"], name="item")).to_parquet(tmp_path / "t.parquet")
    table = opened(tmp_path / "t.parquet")
    assert table.index == {"item"} and table.others("x") == ["y"] and "item" in table.header


def test_the_type_of_a_matrix_holds_all_its_columns(tmp_path: Path) -> None:
    types = {"small": np.int16, "single": np.float32, "large": np.int32, "double": np.float64}
    pd.DataFrame({name: np.ones(2, kind) for name, kind in types.items()}).to_parquet(tmp_path / "t.parquet")
    table = opened(tmp_path / "t.parquet")
    assert [table.dtype([name, "single"]) for name in types] == ["<f4", "<f4", "<f8", "<f8"]


def test_files_of_a_table_have_the_same_columns(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"y": [1]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(LDLError, match="differ in column 'x'; give a table's files the same columns"):
        len(opened(tmp_path).header)
    (tmp_path / "2.parquet").write_bytes(b"PAR1")
    with pytest.raises(LDLError, match="2.parquet cannot be read as Parquet"):
        len(opened(tmp_path))


def test_whole_numbers_name_groups_as_other_entries_do(tmp_path: Path) -> None:
    columns = {"small": np.array([1, -2], np.int8), "large": np.array([2**63, 0], np.uint64), "truth": [True, False]}
    pd.DataFrame(columns).to_parquet(tmp_path / "t.parquet")
    table = opened(tmp_path / "t.parquet")
    for name, entries in columns.items():
        assert table.groups(name, "wrong").tolist() == [str(entry) for entry in entries]
