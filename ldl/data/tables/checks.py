"""Checks of the matrices of a table: finite numbers, and rows on the simplex."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ldl.data.storage import RowFile, blocks_of, origin
from ldl.errors import LDLError
from ldl.tables.entries import LARGEST, as_full, to_numbers

NORMALIZE = "correct the file, or pass --data.normalize true to divide rows by their sums"
R = TypeVar("R", np.ndarray, RowFile)


def check_matrix(path: Path | str, role: str, array: Any, missing: bool = False) -> Any:
    """Return a finite (N, F) float64 matrix; rows in a file are checked in blocks and stay there.

    Args:
        path: Origin of the matrix, for messages.
        role: Its name in messages.
        array: The matrix.
        missing: Accept NaN.

    Raises:
        LDLError: Another shape, or an entry that is not a finite number.
    """
    if not isinstance(array, RowFile):
        array = np.asarray(as_full(array, f"{path}: {role}"))
    if len(array.shape) != 2 or 0 in array.shape:
        raise LDLError(f"{path}: {role} have shape {array.shape}; a matrix with one row a sample is needed")
    # Of rows in a file only the type is checked here.
    numbers = to_numbers(np.empty(0, array.dtype) if isinstance(array, RowFile) else array, f"{path}: {role} are")
    array = array if isinstance(array, RowFile) else numbers
    for start, block in blocks_of(array):
        # In float32, LARGEST would be infinite.
        good = np.abs(block) <= np.float64(LARGEST)
        if missing:
            good |= np.isnan(block)
        if not good.all():
            index, column = np.argwhere(~good)[0]
            source, row = origin(array, str(path), start + index)
            name = array.column(column) if isinstance(array, RowFile) else column
            raise LDLError(
                f"{source}: {role} row {row}, column {name} is {block[index, column]}; every entry must be a finite "
                f"number, at most {LARGEST:g}"
            )
    return array


def check_distributions(rows: R, source: str, normalize: bool = False, fix: str = NORMALIZE) -> R:
    """Check that rows lie on the simplex, and return them in float64, divided by sums within 1e-3 of 1.

    Args:
        rows: (N, C), finite. Rows in a file are returned unchanged; see :func:`divided`.
        source: Their origin, for messages.
        normalize: Accept any positive sum.
        fix: What to do about other sums, for messages.

    Raises:
        LDLError: Negative mass, a sum other than 1, or with ``normalize`` a sum of 0.
    """
    sums = np.empty(len(rows))
    for start, block in blocks_of(rows):
        if len(negative := np.argwhere(block < 0)):
            index, column = negative[0]
            where = "{}: distribution row {}".format(*origin(rows, source, start + index))
            raise LDLError(f"{where}, label {column} is {block[index, column]:g}; mass must not be negative")
        sums[start : start + len(block)] = block.sum(1, dtype=np.float64)
    if len(off := np.flatnonzero(sums <= 0 if normalize else ~(np.abs(sums - 1) <= 1e-3))):
        where = "{}: distribution row {}".format(*origin(rows, source, off[0]))
        if normalize:
            raise LDLError(f"{where} is all zero and cannot be normalised; remove it")
        raise LDLError(f"{where} sums to {sums[off[0]]:.6g}, not 1 ({len(off)} such rows); {fix}")
    return rows if isinstance(rows, RowFile) else divided(rows)


def divided(rows: np.ndarray) -> np.ndarray:
    """Return rows (N, C) divided by their sums, float64."""
    rows = rows.astype(np.float64, copy=False)
    return np.asarray(rows / rows.sum(1)[:, None])
