"""Features of raters: columns that are constant within a rater, in the table of votes or in a file of the raters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ldl.annotations.columns import listed_names, matching_columns
from ldl.annotations.votes import spellings
from ldl.collective import process_rank
from ldl.data.tables.columns import typed
from ldl.errors import LDLError, did_you_mean, some
from ldl.raters.table import FeatureEncoding, RaterTable
from ldl.tables import open_named
from ldl.tables.entries import as_text, read_number
from ldl.tables.roles import usual_columns


def read_raters(path: Path, rater_column: str | None, columns: Sequence[str] | str) -> tuple[pd.DataFrame, Any]:
    """Read a file with one row a rater.

    Args:
        path: A .csv, .tsv or Parquet file.
        rater_column: Column of the rater, if the file has it; else, or if None, the first usual name.
        columns: Names or patterns of the columns of features; none takes all others.

    Returns:
        The columns of features with that of the rater, and its name.

    Raises:
        LDLError: The file cannot be read, or lacks a column.
    """
    if (table := open_named(path)) is None:
        raise LDLError(f"{path}: unknown kind of file; save the raters as .csv, .tsv or .parquet, one row a rater")
    header = table.header
    usual = usual_columns(header, "rater")
    rater = rater_column if rater_column in header else next(iter(usual), None)
    if rater is None:
        raise LDLError(
            f"{path} has no column of the rater; name it {rater_column or 'rater'}. It has "
            f"{some([str(name) for name in header])}"
        )
    names = matching_columns(header, columns, str(path)) if listed_names(columns) else header
    return table.texts([rater, *(name for name in names if name != rater)]), rater


def describe_raters(frame: pd.DataFrame, rater: Any, names: Sequence[str], source: str) -> pd.DataFrame:
    """Return the features of raters as a typed frame (``ldl.data.tables.columns``), one row for each of ``names``.

    Args:
        frame: A table with the column ``rater`` and columns of features, in one or several rows a rater.
        rater: The column of the rater.
        names: Name of each rater, whose order the rows get. A rater who is not in the table has gaps.
        source: Origin of the table, for messages.

    Raises:
        LDLError: A column has several entries for a rater, or entries that are no features.
    """
    columns = [name for name in frame if name != rater]
    key = pd.Series(spellings(frame[rater]), frame.index)
    for name in columns:
        entries = pd.Series(spellings(frame[name]), frame.index)
        several = entries.groupby(key).nunique()
        if len(several := several[several > 1]):
            first = several.index[0]
            values = [repr(entry) for entry in dict.fromkeys(entries[key == first])]
            raise LDLError(
                f"{source}: {len(several)} raters have several entries of {name!r}, the first is {first!r} with "
                f"{some(values)}; give each rater one, or leave the column out of data.rater_features"
            )
    firsts = frame[columns].apply(_parse).set_axis(key)[~key.duplicated().to_numpy()]
    present = np.isin(spellings(names), firsts.index)
    if not present.any():
        raise LDLError(
            f"{source} describes none of the {len(names)} raters, the first is {names[0]!r}"
            f"{did_you_mean(names[0], firsts.index)}; correct the names"
        )
    if not present.all() and process_rank() == 0:
        absent = [name for name, is_present in zip(names, present) if not is_present]
        print(f"{source} does not describe {len(absent)} of {len(names)} raters: {some(absent)}", flush=True)
    return typed(firsts.reindex(spellings(names)).reset_index(drop=True), source)


def _parse(column: pd.Series) -> pd.Series:
    """Return a column of text as numbers if all its entries are numbers or gaps; other columns unchanged."""
    if column.dtype.kind not in "OUS":
        return column
    texts = column.map(as_text)
    numbers = texts.map(read_number).astype(np.float64)
    is_number = bool(numbers.notna().any() and not np.isinf(numbers).any())
    return numbers if is_number else texts.where(numbers.notna(), None)


def make_table(names: Sequence[str], votes: np.ndarray, features: pd.DataFrame | None) -> RaterTable:
    """Return the table of raters with ``votes`` (R,) in training, whose typed ``features`` are encoded if known."""
    if features is None:
        return RaterTable(names, votes)
    encoding = FeatureEncoding.fit(features, np.flatnonzero(votes))
    return RaterTable(names, votes, encoding.transform(features), encoding)
