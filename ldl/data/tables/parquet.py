"""Tables in Parquet files, one or a folder of them, written once as matrices whose rows can be read in place."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.cache import cached_folder, files_key
from ldl.data.files import check_file
from ldl.data.row_file import RowFile, RowWriter
from ldl.data.tables.on_disk import Storage
from ldl.errors import LDLError

ROWS = 2**16
"""That are read at a time."""


@dataclass(frozen=True)
class Parquet:
    """The Parquet files of one table, with the same columns.

    Attributes:
        path: The file, or the folder, for messages.
        files: The files, whose rows follow one another.
    """

    path: Path
    files: Sequence[Path]

    @classmethod
    def find(cls, path: Path) -> Parquet | None:
        """The file, or all of a folder in the order of their names; None where there is none."""
        if os.path.isdir(path):
            files = sorted(path.glob("*.parquet"))
        else:
            files = [path] if path.suffix.lower() == ".parquet" else []
        return cls(path, files) if files else None

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns. Raises LDLError where a file cannot be read, has others, or has one of them twice."""
        names: list[str] = self._opened[0].schema_arrow.names
        for file, opened in zip(self.files, self._opened):
            if other := set(names) ^ set(opened.schema_arrow.names):
                raise LDLError(
                    f"{file} and {self.files[0]} differ in column {min(other)!r}; give a table's files the same columns"
                )
        if doubled := [name for name, count in Counter(names).items() if count > 1]:
            raise LDLError(f"{self.path}: column {doubled[0]!r} is there twice; give every column a name of its own")
        return names

    @cached_property
    def index(self) -> set[str]:
        """The columns that pandas wrote a frame's index to: they name the rows. Raises LDLError."""
        stored = (opened.schema_arrow.pandas_metadata or {} for opened in self._opened)
        # A range has no column.
        return {name for said in stored for name in said.get("index_columns", []) if isinstance(name, str)}

    def matrices(self, columns: Mapping[str, Sequence[str]], group: str | None, storage: Storage) -> dict[str, RowFile]:
        """Matrices of some columns each, by the names that ``columns`` gives them, from the cache or written now.

        Numbers are float32 where the columns of a matrix fit into it, else float64, and NaN where they are null. With
        ``group``, ``groups`` (N, 1) are the places of that column's entries among all of them, sorted as text. Raises
        LDLError: a column that holds no numbers, a group that is missing, or an empty table.
        """
        from pyarrow import default_memory_pool

        types = {name: self._type(names) for name, names in columns.items()}
        rows = [opened.metadata.num_rows for opened in self._opened]
        if not sum(rows):
            raise LDLError(f"{self.path} has no rows")

        def write(folder: Path) -> None:
            for name, names in columns.items():
                with RowWriter(folder / f"{name}.npy", types[name], (sum(rows), len(names))) as writer:
                    for batch in self._batches(names):
                        writer.append(_numbers(batch))
            if group is not None:
                with RowWriter(folder / "groups.npy", np.int64, (sum(rows), 1)) as writer:
                    for places in self._places(group):
                        writer.append(places[:, None])
            # Or pyarrow holds what it has read with, hundreds of MB, for files to come.
            default_memory_pool().release_unused()

        how = f"parquet {sorted((name, list(names)) for name, names in columns.items())} {group!r}"
        folder = storage.tables / files_key(self.files, how)
        cached_folder(folder, write, f"writing {sum(rows):,} rows of {self.path}")
        sources = [(str(file), count) for file, count in zip(self.files, rows)]
        named = {**columns, **({} if group is None else {"groups": [group]})}
        return {name: RowFile.open(folder / f"{name}.npy", 0, sources, names) for name, names in named.items()}

    @cached_property
    def _opened(self) -> list[Any]:
        try:
            from pyarrow import parquet
        except ImportError:
            raise LDLError(f"{self.path}: reading Parquet needs pyarrow; pip install 'ldl[parquet]'") from None
        opened = []
        for file in self.files:
            check_file(file, "data file", "give --data.path, or its folder with --data.root or LDL_DATA")
            with _readable(file):
                opened.append(parquet.ParquetFile(file))
        return opened

    def _type(self, names: Sequence[str]) -> str:
        """The type of a matrix of these columns."""
        from pyarrow import types

        narrow = True
        for file, opened in zip(self.files, self._opened):
            for name in names:
                kind = opened.schema_arrow.field(name).type
                if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                    raise LDLError(f"{file}: column {name!r} is {kind}, not numbers; leave it out, or encode it")
                narrow &= kind.bit_width <= (32 if types.is_floating(kind) else 16)
        return "<f4" if narrow else "<f8"

    def _batches(self, names: Sequence[str]) -> Iterator[list[Any]]:
        for file, opened in zip(self.files, self._opened):
            with _readable(file):
                for batch in opened.iter_batches(ROWS, columns=list(names), use_threads=False):
                    yield [batch.column(name) for name in names]

    def _places(self, name: str) -> Iterator[np.ndarray]:
        from pyarrow import array, compute, string

        def texts() -> Iterator[Any]:
            for (column,) in self._batches([name]):
                yield compute.utf8_trim_whitespace(column.cast(string()))

        seen: set[str] = set().union(*(part.unique().drop_null().to_pylist() for part in texts()))
        known, rows = array(sorted(seen - {""}), string()), 0
        for part in texts():
            places = compute.index_in(part, known)
            if places.null_count:
                row = rows + int(np.argmin(places.is_valid()))
                raise LDLError(
                    f"{self.path}: the group of row {row}, column {name!r}, is missing; give every row one, of its own "
                    "where it belongs to none"
                )
            rows += len(part)
            yield places.to_numpy()


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # those of pyarrow have no common base
        raise LDLError(f"{file} cannot be read as Parquet: {' '.join(str(error).split())[:200]}") from error


def _numbers(columns: Sequence[Any]) -> np.ndarray:
    from pyarrow import float64

    # Not safe: integers beyond 2^53 are rounded, as those of a .csv are.
    return np.stack([column.cast(float64(), safe=False).to_numpy(zero_copy_only=False) for column in columns], 1)
