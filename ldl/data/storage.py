"""Tables larger than memory: rows of .npy files that are read by number, and columns that are computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import numpy as np
import torch
from numpy.lib.format import open_memmap, write_array_header_1_0
from torch import Tensor

from ldl.data.cache import cache_root, cached_folder, files_key
from ldl.errors import LDLError, explaining
from ldl.moved import old_names
from ldl.tables.parquet import Parquet
from ldl.validation.archive import check_npy
from ldl.validation.files import ABSENT, check_file

MAPPED_BYTES = 2**26
"""Bytes of the file that are mapped at a time if rows are requested by number."""
BLOCK_BYTES = 2**24
"""Bytes of numbers that are processed at a time."""
READ_AHEAD_BYTES = 2**26
"""Bytes of a column that are read ahead."""
T = TypeVar("T")


@dataclass(frozen=True)
class RowFile:
    """The rows (N, ...) of a matrix in a .npy file, in C order.

    Every read maps the file again. Therefore rows that were read do not stay in the resident memory of the process, and
    loader processes receive a path instead of the numbers.

    Attributes:
        path: The file.
        dtype: Type of the numbers, as numpy writes it in .npy files.
        shape: Number of rows, and shape of one row.
        offset: Byte at which the first row begins.
        sources: Files that the matrix was made of, with their numbers of rows, for messages; may be empty.
        names: Names of the columns, for messages; may be empty.
    """

    path: Path
    dtype: str
    shape: tuple[int, ...]
    offset: int
    sources: tuple[tuple[str, int], ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: Path, sources: Sequence[tuple[str, int]] = (), names: Sequence[str] = ()) -> RowFile:
        """Open a .npy file. Raises LDLError."""
        with check_file(path, "data file", ABSENT).open("rb") as stream:
            check_npy(path, stream, path.stat().st_size)
        with explaining(f"{path} cannot be read as .npy", errors=(ValueError,)):
            rows = open_memmap(path, mode="r")
        if not rows.flags.c_contiguous:
            raise LDLError(f"{path} has its columns one after the other, not its rows; save np.ascontiguousarray of it")
        return cls(path, rows.dtype.str, rows.shape, rows.offset, tuple(sources), tuple(names))

    @property
    def nbytes(self) -> int:
        """Number of bytes of all rows."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def map(self, mode: Literal["r", "r+"] = "r") -> np.ndarray:
        """Return a memory map of all rows, which with ``r+`` may be written."""
        # Not "c": a private map counts as memory, and the system does not map more than its memory.
        return np.memmap(self.path, self.dtype, mode, self.offset, self.shape)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return a copy of some rows, given by a slice or by their numbers (B,)."""
        if isinstance(rows, slice):
            return np.array(self.map()[rows])
        order = np.argsort(rows, kind="stable")
        entries = np.empty((len(rows), *self.shape[1:]), self.dtype)
        each = max(1, MAPPED_BYTES // (self.nbytes // max(1, len(self))))
        for block in np.split(order, np.searchsorted(rows[order], np.arange(each, len(self), each))):
            if len(block):
                entries[block] = self.map()[rows[block]]
        return entries

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.map(), dtype)

    def blocks(self, rows: np.ndarray | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Yield copies of all rows, or of rising ``rows``, block by block, with the position of the first row."""
        step = max(1, BLOCK_BYTES // (8 * prod(self.shape[1:])))
        for start in range(0, len(self) if rows is None else len(rows), step):
            block = slice(start, start + step)
            yield start, np.array(self.map()[block if rows is None else rows[block]])

    def where(self, row: int) -> tuple[str, int]:
        """Return the file that a row came from, and its number there, for messages."""
        for name, count in self.sources:
            if row < count:
                return name, row
            row -= count
        return str(self.path), row

    def column(self, number: int) -> str:
        """Return the name of a column, or its number, for messages."""
        return repr(self.names[number]) if self.names else str(number)


class RowWriter:
    """A context that writes the rows of a .npy file block by block.

    It writes to a file and not to a map, because dirty pages of a map count as resident memory of the process.

    Args:
        path: The file.
        dtype: Type of the numbers.
        shape: Number of all rows, and shape of one row.
    """

    def __init__(self, path: Path, dtype: np.typing.DTypeLike, shape: tuple[int, ...]) -> None:
        self.dtype = np.dtype(dtype)
        self._file = path.open("wb")
        write_array_header_1_0(self._file, {"descr": self.dtype.str, "fortran_order": False, "shape": shape})

    def append(self, rows: np.ndarray) -> None:
        """Write the next rows (B, ...)."""
        self._file.write(np.ascontiguousarray(rows, self.dtype).data)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def blocks_of(rows: np.ndarray | RowFile) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the rows of a file or an array block by block, each with its first position."""
    if isinstance(rows, RowFile):
        yield from rows.blocks()
        return
    step = max(1, BLOCK_BYTES // max(1, 8 * prod(rows.shape[1:])))
    yield from ((start, rows[start : start + step]) for start in range(0, len(rows), step))


def origin(rows: np.ndarray | RowFile, source: str, row: int) -> tuple[str, int]:
    """Return the file that a row came from (``source``, unless the rows record it) and its number there."""
    return rows.where(row) if isinstance(rows, RowFile) and rows.sources else (source, row)


class BatchColumn(Protocol):
    """A column of a data set, with one entry per instance; every tensor is a column."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Tensor, /) -> Tensor: ...


@dataclass
class LazyColumn:
    """A column whose entries are computed from rows on demand, such as scaled features of a table on disk.

    Attributes:
        rows: The rows, in a file or an array (N, ...).
        make: Computes entries (B, ...) from rows (B, ...) and the keyword ``numbers`` (B,), the numbers of the rows.
    """

    rows: RowFile | np.ndarray
    make: Callable[..., Tensor]

    def __post_init__(self) -> None:
        self._forget()

    def __reduce__(self) -> tuple[type[LazyColumn], tuple[RowFile | np.ndarray, Callable[..., Tensor]]]:
        return LazyColumn, (self.rows, self.make)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        numbers = rows.numpy()
        if not self._is_ahead(numbers):
            return self.make(self.rows[numbers], numbers=numbers)
        read = self._read[self._next : self._next + len(numbers)]
        self._next += len(numbers)
        return self.make(read, numbers=numbers)

    def reordered(self, places: list[int]) -> LazyColumn:
        """Return a column of the entries (..., C) with their last dimension in the order ``places`` (C,)."""
        return LazyColumn(self.rows, partial(_reordered, self.make, places))

    def prefetch_rows(self, coming: Callable[[int], np.ndarray]) -> None:
        """Read the rows of many batches at once, which lie closer together in the file than those of one batch.

        Args:
            coming: Returns the rows (M,) of the next batches, from the current one on, for a wanted number of rows.
        """
        if isinstance(self.rows, RowFile) and not self._is_ahead(coming(1)):
            self._forget()
            self._numbers = coming(READ_AHEAD_BYTES * len(self) // self.rows.nbytes)
            self._read = self.rows[self._numbers]

    def _is_ahead(self, numbers: np.ndarray) -> bool:
        return np.array_equal(self._numbers[self._next : self._next + len(numbers)], numbers) and len(numbers) > 0

    def _forget(self) -> None:
        self._numbers, self._read, self._next = np.empty(0, np.int64), np.empty(0), 0


def _reordered(make: Callable[..., Tensor], places: list[int], rows: np.ndarray, numbers: np.ndarray) -> Tensor:
    return make(rows, numbers=numbers)[..., places]


def pieces(column: BatchColumn) -> Iterator[Tensor]:
    """Yield a tensor as a whole, and another column in pieces that fit into memory."""
    if isinstance(column, Tensor):
        yield column
    else:
        yield from (column[rows] for rows in torch.arange(len(column)).split(2**16))


@dataclass(frozen=True)
class Storage:
    """The place of a table's numbers, in memory or on disk.

    Attributes:
        in_memory: Largest matrix in MB, counted as float32, that is read into memory.
        cache_dir: Folder for tables that are rewritten to be read in place; None takes the usual one.
    """

    in_memory: float = 256
    cache_dir: str | None = None

    def place(self, matrix: T) -> T | np.ndarray:
        """Return a matrix unchanged, or read it from its file if it fits into memory."""
        return np.asarray(matrix) if isinstance(matrix, RowFile) and self.fits(matrix.shape) else matrix

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether a matrix of this shape is read into memory."""
        return 4 * prod(shape) <= self.in_memory * 2**20

    def read(self, table: Parquet, names: Sequence[str]) -> np.ndarray | RowFile:
        """Return columns as a matrix in memory or, if it is too large, in a file of the cache.

        Raises:
            LDLError: A column holds no numbers, or the cache cannot be written.
        """
        shape = len(table), len(names)
        if self.fits(shape):
            return table.numbers(names)

        def write(folder: Path) -> None:
            with RowWriter(folder / "rows.npy", table.dtype(names), shape) as writer:
                for block in table.blocks(names):
                    writer.append(block)

        folder = self.tables / files_key(table.files, f"parquet {list(names)}")
        cached_folder(folder, write, f"writing {len(table):,} rows of {table.path}")
        return RowFile.open(folder / "rows.npy", list(zip(map(str, table.files), table.rows)), names)

    @property
    def tables(self) -> Path:
        """Folder of rewritten tables."""
        return cache_root(self.cache_dir) / "tables"


USUAL = Storage()

__getattr__ = old_names(__name__)
