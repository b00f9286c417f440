"""Counts in columns of labels: whole votes, shares with or without a number of votes, and percentages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ldl.errors import LDLError
from ldl.tables import CsvTable, open_named
from ldl.tables.entries import MISSING

TINY = 1e-9
"""Largest distance of a count from 0, or from a whole number, that is an error of rounding."""


def counts_of(
    table: pd.DataFrame, columns: Sequence[Any], total: Any, source: str, notes: list[str]
) -> tuple[np.ndarray, bool]:
    """Return the counts (N, C) in label columns, and whether they are shares in whole percent.

    Args:
        table: The table.
        columns: Its label columns.
        total: Column with the number of votes of each item, to which counts are scaled; or None.
        source: Name of the table, for messages.
        notes: Receives lines about entries that could be read in another way.

    Raises:
        LDLError: An entry is no finite number of at least 0.
    """
    counts = np.nan_to_num(np.stack([_numbers(table[column], source) for column in columns], 1))
    near = np.round(counts)
    if whole := bool((np.abs(counts - near) <= TINY * near.clip(1)).all()):
        counts = near
    sums = counts.sum(1)
    counts[sums <= TINY] = 0
    voted = sums > TINY
    percent = whole and bool(voted.any()) and bool((np.abs(sums[voted] - 100) <= 1).all())
    if total is None:
        if percent:
            notes.append(
                f"{source}: the labels of every row are whole numbers with a sum of {sums[voted].min():g} to "
                f"{sums[voted].max():g} and are read as percentages, so the number of votes is unknown; if they are "
                "votes, or if it is known, give the number in a column, votes_column"
            )
            return counts / sums.clip(1)[:, None], True
        ones, others = np.abs(sums - 1) <= 0.02, voted & (np.abs(sums - 1) > 0.02)
        if not whole and ones.any() and others.any():
            notes.append(
                f"{source}: the labels of {int(ones.sum())} rows sum to 1, as shares do, and those of "
                f"{int(others.sum())} rows to up to {sums.max():g}; all are read as shares; give the number of votes "
                "in a column, votes_column"
            )
        return counts, False
    votes = np.nan_to_num(_numbers(table[total], source))
    voted &= votes > 0
    shares = percent or not whole or len(np.unique(sums[voted])) < 2
    if not shares and (off := voted & (sums != votes)).any():
        notes.append(
            f"{source}: the counts of {int(off.sum())} rows do not sum to {total}, the first sums to {sums[off][0]:g} "
            f"with {votes[off][0]:g}; they are read as shares of that number of votes"
        )
    scaled = np.zeros_like(counts)
    scaled[voted] = counts[voted] * (votes[voted] / sums[voted])[:, None]
    return (_rounded(scaled) if (votes == np.round(votes)).all() else scaled), False


def place_of(row: int, source: str) -> str:
    """Return the line of a row, from 0, in a CSV file, or the row in another table."""
    opened = open_named(Path(source)) if Path(source).is_file() else None
    return f"line {opened.lines[row]}" if isinstance(opened, CsvTable) else f"row {row}"


def _numbers(column: pd.Series, source: str) -> np.ndarray:
    """Return a column of counts as float64, NaN for gaps."""
    column = column.mask(column.astype(str).str.strip().str.lower().isin(MISSING))
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = (~np.isfinite(numbers) & column.notna().to_numpy()) | (numbers < -TINY)
    if wrong.any():
        row = int(wrong.argmax())
        raise LDLError(
            f"{source}: {int(wrong.sum())} entries of {column.name!r} are no counts, the first is "
            f"{str(column.iloc[row])!r} in {place_of(int(column.index[row]), source)}; counts are finite numbers of at "
            "least 0"
        )
    return np.maximum(numbers, 0)


def _rounded(counts: np.ndarray) -> np.ndarray:
    """Round counts (N, C) to whole votes of the same sums, by the largest remainder method.

    Published shares are rounded, so their products with the numbers of votes are not whole.
    """
    whole = np.floor(counts + TINY)
    missing = np.round(counts.sum(1) - whole.sum(1))
    rank = np.argsort(np.argsort(whole - counts, axis=1, kind="stable"), axis=1)
    return whole + (rank < missing[:, None])
