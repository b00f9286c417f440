"""Checks of the matrices of a table, in memory and in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldl.data.storage import RowFile
from ldl.data.tables.checks import check_distributions, check_matrix, divided
from ldl.errors import LDLError


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3), r"t: features have shape \(3,\); a matrix with one row a sample is needed"),
        (np.ones((0, 2)), r"t: features have shape \(0, 2\)"),
        ([["a"]], "t: features are <U1, not numbers"),
        ([[1, 2], [np.nan, 3]], "t: features row 1, column 0 is nan; every entry must be a finite number"),
        ([[1, 1e101]], r"t: features row 0, column 1 is 1e\+101"),
    ],
)
def test_matrices_hold_finite_numbers(array: Any, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        check_matrix("t", "features", array)


def test_missing_numbers_are_accepted_on_demand() -> None:
    rows = check_matrix("t", "features", [[1, np.nan]], missing=True)
    assert rows.dtype == np.float64 and np.isnan(rows[0, 1])
    with pytest.raises(LDLError, match="column 0 is inf"):
        check_matrix("t", "features", [[np.inf, np.nan]], missing=True)


def test_rows_in_a_file_are_checked_and_stay_there(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.float32([[1, 2], [3, np.inf]]))
    with pytest.raises(LDLError, match="features row 1, column 1 is inf"):
        check_matrix(tmp_path, "features", RowFile.open(tmp_path / "x.npy"))
    np.save(tmp_path / "y.npy", np.ones((2, 2), np.float32))
    rows = RowFile.open(tmp_path / "y.npy")
    assert check_matrix(tmp_path, "features", rows) is rows
    with pytest.raises(LDLError, match="distribution row 0 sums to 2, not 1"):
        check_distributions(rows, "t")
    assert check_distributions(rows, "t", normalize=True) is rows


def test_distributions_are_divided_by_sums_close_to_one() -> None:
    rows = check_distributions(np.array([[0.5, 0.5005], [0.25, 0.75]]), "t")
    np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-15)
    np.testing.assert_array_equal(divided(np.array([[1, 3]])), [[0.25, 0.75]])


@pytest.mark.parametrize(
    ("rows", "normalize", "message"),
    [
        ([[0.5, 0.5], [1.2, -0.2]], False, "t: distribution row 1, label 1 is -0.2; mass must not be negative"),
        ([[1.2, -0.2]], True, "label 1 is -0.2"),
        ([[0.5, 0.5], [1, 1]], False, r"row 1 sums to 2, not 1 \(1 such rows\); correct the file, or pass"),
        ([[0.5, 0.5], [0, 0]], True, "row 1 is all zero and cannot be normalised; remove it"),
    ],
)
def test_what_is_no_distribution_is_named(rows: Any, normalize: bool, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        check_distributions(np.array(rows, np.float64), "t", normalize)
