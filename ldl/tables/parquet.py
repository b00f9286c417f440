"""Reading Parquet files: their columns in memory, or block by block."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from ldl.errors import LDLError, explaining
from ldl.tables.entries import as_text, read_number, to_names, to_numbers
from ldl.validation.archive import check_unpacked
from ldl.validation.files import ABSENT, check_file, kind_of, visible

NULL = "__HIVE_DEFAULT_PARTITION__"
"""Name of a folder with a missing value."""
BLOCK_ROWS = 2**16
"""Rows that are read at a time."""


@dataclass(frozen=True)
class Parquet:
    """The Parquet files of one table, with the same columns.

    Attributes:
        path: The file or folder, for messages.
        files: The files, in the order of their rows.
    """

    path: Path
    files: Sequence[Path]

    @classmethod
    def find(cls, path: Path) -> Parquet | None:
        """Return a file, or all files of a folder in natural order (part-2 before part-10), or None.

        Folders within it that are named ``column=value``, as in Hive, are a column of all rows below them.
        """
        if not os.path.isdir(path):
            return cls(path, [path]) if kind_of(path) == ".parquet" else None
        files_by_names = {file.relative_to(path).parts: file for file in visible(path, "**/*.parquet")}
        # Files of Spark and Hive themselves begin with an underscore.
        kept = [names for names in files_by_names if all("=" in name for name in names[:-1]) and names[-1][0] != "_"]
        files = [files_by_names[names] for names in sorted(sorted(kept), key=_natural)]
        return cls(path, files) if files else None

    def __len__(self) -> int:
        return sum(self.rows)

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns. Raises LDLError if files cannot be read or differ."""
        columns = [
            [*opened.schema_arrow.names, *folders] for opened, folders in zip(self._opened, self._folder_columns)
        ]
        for file, others in zip(self.files, columns):
            if other := set(columns[0]) ^ set(others):
                raise LDLError(
                    f"{file} and {self.files[0]} differ in column {min(other)!r}; give a table's files the same columns"
                )
        return columns[0]

    @cached_property
    def index(self) -> set[str]:
        """Columns of row names, to which pandas wrote the index of a frame. Raises LDLError."""
        stored = (opened.schema_arrow.pandas_metadata or {} for opened in self._opened)
        # A range has no column.
        return {name for metadata in stored for name in metadata.get("index_columns", []) if isinstance(name, str)}

    def others(self, *names: str) -> list[str]:
        """Return the names of all other columns, without those of row names."""
        leave = self.index | set(names)
        return [name for name in self.header if name not in leave]

    def frame(self, names: Sequence[str]) -> Any:
        """Return columns as a pandas DataFrame. Raises LDLError."""
        import pandas

        frames = list(self._frames(names, block_rows=max(1, *self.rows)))
        return frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)

    texts = frame
    """CSV files have text alone; here it is the columns as they are."""

    def groups(self, name: str, why: str = "") -> np.ndarray:
        """Return the entries of one column as text, (N,). Raises LDLError, with ``why``, if one is missing."""
        column = self.frame([name])[name]
        if column.dtype.kind in "iu":  # never missing
            return np.asarray(column.astype(str), object)
        entries = column.to_numpy(object)
        if why and (missing := np.array([not as_text(entry) for entry in entries], bool)).any():
            row = int(missing.argmax())
            raise LDLError(f"{self.path}: row {row}, column {name!r} is {str(entries[row])[:80]!r}, {why}")
        return to_names(entries, f"{self.path}: the group, column {name!r},")

    def numbers(self, names: Sequence[str], missing: bool = False) -> np.ndarray:
        """Return columns as a (rows, columns) float64 matrix, with NaN for null. Raises LDLError."""
        return self._matrix(self.frame(names))

    def blocks(self, names: Sequence[str]) -> Iterator[np.ndarray]:
        """Yield columns as matrices of successive rows, (n, columns) float64. Raises LDLError."""
        from pyarrow import default_memory_pool

        yield from map(self._matrix, self._frames(names))
        # Otherwise pyarrow keeps hundreds of MB of buffers.
        default_memory_pool().release_unused()

    @cached_property
    def rows(self) -> list[int]:
        """Number of rows of each file."""
        return [opened.metadata.num_rows for opened in self._opened]

    @cached_property
    def _folder_columns(self) -> list[dict[str, Any]]:
        """Columns in the names of the folders above each file, with their value, a number if it spells one."""
        columns: list[dict[str, Any]] = []
        for file in self.files:
            above = file.relative_to(self.path).parts[:-1] if file != self.path else ()
            values: dict[str, Any] = {}
            for folder in above:
                name, text = map(unquote, folder.split("=", 1))
                text = text.replace(NULL, "")
                number = read_number(text)
                values[name] = text if np.isinf(number) else number
            columns.append(values)
        return columns

    @cached_property
    def _opened(self) -> list[Any]:
        with explaining(f"{self.path}: reading Parquet needs pyarrow", "pip install 'ldl[parquet]'", (ImportError,)):
            from pyarrow import parquet
        opened = []
        for file in self.files:
            check_file(file, "data file", ABSENT)
            with explaining(f"{file} cannot be read as Parquet"):
                opened.append(parquet.ParquetFile(file))
                check_unpacked(file, 8 * opened[-1].metadata.num_rows * opened[-1].metadata.num_columns)
        return opened

    def _frames(self, names: Sequence[str], block_rows: int = BLOCK_ROWS) -> Iterator[Any]:
        """Yield some columns part by part as data frames of at most ``block_rows`` rows."""
        for file, opened, folders in zip(self.files, self._opened, self._folder_columns):
            inside = [name for name in names if name not in folders]
            with explaining(f"{file} cannot be read as Parquet"):
                for batch in opened.iter_batches(block_rows, columns=inside, use_threads=False):
                    frame = batch.to_pandas(ignore_metadata=True)
                    for name, value in folders.items():
                        frame[name] = value
                    # A selection copies the frame.
                    yield frame if list(frame.columns) == list(names) else frame[list(names)]

    def _matrix(self, frame: Any) -> np.ndarray:
        subject = f"{self.path}: column {{!r}} is"
        return np.stack([to_numbers(column, subject.format(name)) for name, column in frame.items()], 1)

    def dtype(self, names: Sequence[str]) -> str:
        """Return the type of a matrix of columns: float32 if all columns fit into it, else float64."""
        import pyarrow.types as types

        def is_narrow(kind: Any) -> bool:
            if types.is_integer(kind):
                return bool(kind.bit_width <= 16)
            return types.is_boolean(kind) or (types.is_floating(kind) and kind.bit_width <= 32)

        inside = [name for name in names if name not in self._folder_columns[0]]
        narrow = (is_narrow(opened.schema_arrow.field(name).type) for opened in self._opened for name in inside)
        return "<f4" if len(inside) == len(names) and all(narrow) else "<f8"


def _natural(names: Sequence[str]) -> list[list[tuple[float, str]]]:
    """Return a key that sorts the numbers within names as numbers."""
    pieces = (filter(None, re.split("([0-9]+)", name)) for name in names)
    return [[(int(piece), "") if piece[0] in "0123456789" else (math.inf, piece) for piece in row] for row in pieces]
