"""What the numbers of a table are held against: finite, on the simplex, a group a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ldl.data.arrays import as_full
from ldl.data.csv_table import LARGEST
from ldl.data.row_file import RowFile, blocks_of, origin
from ldl.errors import LDLError

FIX = "correct the file, or pass --data.normalize true to divide rows by their sums"
R = TypeVar("R", np.ndarray, RowFile)


def check_matrix(path: Path | str, what: str, array: Any, missing: bool = False) -> Any:
    """The array as a finite (N, F) float64 matrix; with ``missing`` it may hold NaN. Raises LDLError.

    Rows in a file are checked part by part, and stay there.
    """
    if not isinstance(array, RowFile):
        array = np.asarray(as_full(array, f"{path}: {what}"))
    if len(array.shape) != 2 or 0 in array.shape:
        raise LDLError(f"{path}: {what} have shape {array.shape}; a matrix with one row a sample is needed")
    if np.dtype(array.dtype).kind not in "fiub":
        raise LDLError(f"{path}: {what} are {array.dtype}, not numbers")
    if not isinstance(array, RowFile):
        array = array.astype(np.float64)
    for start, block in blocks_of(array):
        # LARGEST is infinite in float32.
        bad = ~((np.abs(block) <= np.float64(LARGEST)) | (missing & np.isnan(block)))
        if bad.any():
            place, column = np.argwhere(bad)[0]
            source, row = origin(array, str(path), start + place)
            name = array.column(column) if isinstance(array, RowFile) else column
            raise LDLError(
                f"{source}: {what} row {row}, column {name} is {block[place, column]}; every entry must be a finite "
                f"number, at most {LARGEST:g}"
            )
    return array


def check_distributions(rows: R, source: str, normalize: bool = False, fix: str = FIX) -> R:
    """Rows on the simplex, float64: checked, and freed of rounding (sums within 1e-3 of 1 are divided out).

    ``fix`` says what to do about other sums. Rows in a file stay as they are: see :func:`divided`.
    """
    sums = np.empty(len(rows))
    for start, block in blocks_of(rows):
        if len(negative := np.argwhere(block < 0)):
            place, column = negative[0]
            source, row = origin(rows, source, start + place)
            raise LDLError(
                f"{source}: distribution row {row}, label {column} is {block[place, column]:g}; mass must not be "
                "negative"
            )
        sums[start : start + len(block)] = block.sum(1, dtype=np.float64)
    if normalize and len(empty := np.flatnonzero(sums <= 0)):
        source, row = origin(rows, source, empty[0])
        raise LDLError(f"{source}: distribution row {row} is all zero and cannot be normalised; remove it")
    if not normalize and len(off := np.flatnonzero(~(np.abs(sums - 1) <= 1e-3))):
        source, row = origin(rows, source, off[0])
        raise LDLError(
            f"{source}: distribution row {row} sums to {sums[off[0]]:.6g}, not 1 ({len(off)} such rows); {fix}"
        )
    return rows if isinstance(rows, RowFile) else divided(rows)


def divided(rows: np.ndarray) -> np.ndarray:
    """Rows (N, C) divided by their sums, float64."""
    rows = rows.astype(np.float64, copy=False)
    return np.asarray(rows / rows.sum(1)[:, None])


def check_groups(path: Path, groups: Any, rows: int) -> np.ndarray | None:
    """One group a row, (N,) of any type that sorts, or None of None. Raises LDLError where some are missing."""
    if groups is None:
        return None
    groups = np.ravel(groups)
    if groups.dtype == object:  # cells of a .mat file
        groups = np.array([str(np.squeeze(entry)) for entry in groups])
    if len(groups) != rows:
        raise LDLError(f"{path}: {rows} rows of features but {len(groups)} groups")
    if groups.dtype.kind in "iub":
        return groups
    blank = np.isnan(groups) if groups.dtype.kind == "f" else np.char.strip(groups.astype(str)) == ""
    if blank.any():
        raise LDLError(
            f"{path}: the group of row {blank.argmax()} is missing ({blank.sum()} such rows); give every row one, of "
            "its own where it belongs to none"
        )
    return groups
