"""A large table read by ldl and, as a user does it without ldl, by pandas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.speed_cases import OURS, Works, case, scratch

ROWS, FEATURES = 200_000, 28
"""Size of the table, which also has a column of items and one of values."""


def write_mixed(path: Path) -> None:
    """Write a table of items, features and values as CSV or Parquet, by the suffix of the path."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(ROWS, FEATURES)), columns=[f"x{number}" for number in range(FEATURES)])
    frame = frame.assign(id=np.arange(len(frame)), age=rng.integers(0, 100, len(frame)))
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)


def readings_of(kind: str) -> Works:
    """Write a table as ``csv`` or ``parquet`` and return its readings: for a data module, its columns alone, pandas."""
    from ldl.data import TabularValues
    from ldl.tables import open_named

    path = Path(scratch().name) / f"mixed.{kind}"
    write_mixed(path)

    def read_columns() -> object:
        table = open_named(path)
        assert table is not None
        return table.numbers(table.header)

    return {
        OURS: lambda: TabularValues(path=str(path)).read(),
        "ldl, columns alone": read_columns,
        "pandas": lambda: pd.read_csv(path) if kind == "csv" else pd.read_parquet(path),
    }


@case
def read_csv() -> Works:
    """Read a CSV of 200,000 x 30 for a data module: items, features, values, and their checks."""
    return readings_of("csv")


@case
def read_parquet() -> Works:
    """Read the same table from Parquet."""
    return readings_of("parquet")
