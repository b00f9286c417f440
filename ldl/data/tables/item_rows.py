"""Rows of items in tables in which an item has several rows, such as one row for each vote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ldl.errors import LDLError, some
from ldl.tables.entries import is_frame


def first_rows(items: np.ndarray) -> np.ndarray:
    """Return the first row of each item (N,), rising."""
    return np.sort(np.unique(items, return_index=True)[1])


def take_rows(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of a frame, whose index is then their number, or of an array."""
    return table.iloc[rows].reset_index(drop=True) if is_frame(table) else table[rows]


def check_constant(columns: pd.DataFrame, items: np.ndarray, source: str) -> None:
    """Raise LDLError if a column of a table with one row a vote differs between the rows of an item.

    Args:
        columns: Columns that describe items.
        items: (N,) item of each row.
        source: Name of the table, for messages.
    """
    _, first, item = np.unique(items, return_index=True, return_inverse=True)
    differs: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        codes = pd.factorize(column)[0]  # -1 for a gap
        if (mask := codes != codes[first[item]]).any():
            differs[str(name)] = mask
    if differs:
        name, mask = next(iter(differs.items()))
        raise LDLError(
            f"{source} has one row a vote, and {some(list(differs))} differ within an item, first {name!r} of "
            f"{str(items[int(mask.argmax())])!r}; leave out what describes votes with --data.drop, or correct it"
        )
