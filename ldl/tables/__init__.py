"""Tables with named columns in CSV and Parquet files, and the meaning of their entries."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ldl.tables.csv_table import MARKS, CsvTable, read_csv
from ldl.tables.parquet import Parquet
from ldl.validation.files import ABSENT, check_file, kind_of


def open_named(path: Path, has_header: Callable[[list[str]], bool] = lambda row: True) -> CsvTable | Parquet | None:
    """Return the named columns of a .csv, .tsv or Parquet file or folder, or None for another kind. Raises LDLError."""
    if kind_of(path) in MARKS and not os.path.isdir(path):
        return read_csv(check_file(path, "data file", ABSENT), has_header)
    return Parquet.find(path)
