"""Rows of numbers in a file, too many for memory: written once in blocks, read in blocks or by their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

import numpy as np

from ldl.errors import LDLError

SCATTERED = 2**14
"""Bytes of the file for every row that is asked for, beyond which they are read one by one."""
MAPPED = 2**26
"""Bytes of the file that are mapped at a time where rows are asked for by their numbers."""
BLOCK = 2**24
"""Bytes of the numbers that are worked on at a time."""


@dataclass(frozen=True)
class RowFile:
    """The rows (N, ...) of a matrix in a file, in C order.

    Every read maps the file anew: what was read before does not count as resident memory of the process for ever, and
    loader processes get a path in place of the numbers.

    Attributes:
        path: The file.
        dtype: Type of the numbers, as numpy writes it in .npy files.
        shape: Rows and the shape of one.
        offset: Byte at which the first row begins.
        sources: Files of which it was made, with their rows, for messages; empty where it is its own.
        names: What the columns are called, for messages; empty where nobody knows.
    """

    path: Path
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0
    sources: tuple[tuple[str, int], ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        path: Path,
        offset: int = 0,
        sources: Sequence[tuple[str, int]] = (),
        names: Sequence[str] = (),
    ) -> RowFile:
        """The matrix that a .npy file holds, or another file from byte ``offset`` on. Raises LDLError."""
        with path.open("rb") as file:
            file.seek(offset)
            shape, fortran, dtype = read_npy_header(file, path)
            start = file.tell()
        if fortran and len(shape) > 1:
            raise LDLError(f"{path} has its columns one after the other, not its rows; save np.ascontiguousarray of it")
        if start + prod(shape) * dtype.itemsize > path.stat().st_size:
            raise LDLError(f"{path} is cut off: rows of shape {shape} need more bytes than it has; write it again")
        return cls(path, dtype.str, shape, start, tuple(sources), tuple(names))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def map(self, mode: Literal["r", "r+"] = "r") -> np.ndarray:
        """All rows, as a map: read from the file where they are looked at, and with ``r+`` written to it."""
        # Not "c": a private map counts as memory, and one larger than that is refused.
        return np.memmap(self.path, self.dtype, mode, self.offset, self.shape)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """A copy of some rows, by a slice or their numbers (B,), which are read from the lowest to the highest."""
        if isinstance(rows, slice):
            return np.array(self.map()[rows])
        order = np.argsort(rows, kind="stable")
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        far = hasattr(os, "pread") and 0 < SCATTERED * len(rows) < self.nbytes
        if far:
            found[order] = self._one_by_one(rows[order])
            return found
        each = max(1, MAPPED // (self.nbytes // max(1, len(self))))
        for part in np.split(order, np.searchsorted(rows[order], np.arange(each, len(self), each))):
            if len(part):
                found[part] = self.map()[rows[part]]
        return found

    def _one_by_one(self, rows: np.ndarray) -> np.ndarray:
        """Rows that lie far from each other: to map pages for a row costs more than to ask for the row."""
        size = self.nbytes // len(self)
        with self.path.open("rb") as file:
            number = file.fileno()
            parts = [os.pread(number, size, self.offset + row * size) for row in rows.tolist()]
        return np.frombuffer(b"".join(parts), self.dtype).reshape(len(rows), *self.shape[1:])

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.map(), dtype)

    def blocks(self, rows: np.ndarray | None = None, width: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Copies of all rows, or of those with rising numbers ``rows``, part by part, each with its first place.

        ``width`` is how many numbers of 8 bytes a row is worked on as; None takes the row's own.
        """
        step = max(1, BLOCK // (8 * (width or prod(self.shape[1:]))))
        for start in range(0, len(self) if rows is None else len(rows), step):
            part = slice(start, start + step)
            yield start, np.array(self.map()[part if rows is None else rows[part]])

    def where(self, row: int) -> tuple[str, int]:
        """The file that a row came from, and its number there, for messages."""
        for name, count in self.sources:
            if row < count:
                return name, row
            row -= count
        return str(self.path), row

    def column(self, number: int) -> str:
        """A column by its name, where it has one, else by its number, for messages."""
        return repr(self.names[number]) if self.names else str(number)


def read_npy_header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type of what follows in a .npy file. Raises LDLError."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except ValueError as error:
        raise LDLError(f"{path} cannot be read as .npy: {' '.join(str(error).split())[:200]}") from None
    if dtype.hasobject or dtype.names:
        raise LDLError(f"{path} holds {dtype}, not numbers")
    return shape, fortran, dtype


class RowWriter:
    """Writes the rows of a .npy file one block after the other, as a context.

    Written to a file, not into a map: pages that wait for the disk do not count as resident memory of the process.

    Args:
        path: The file.
        dtype: Type of the numbers.
        shape: Rows, all of which must have come at the end, and the shape of one.
    """

    def __init__(self, path: Path, dtype: np.typing.DTypeLike, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), shape
        self.written = 0

    def __enter__(self) -> RowWriter:
        self._file = self.path.open("wb")
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(self._file, header)
        return self

    def append(self, rows: np.ndarray) -> None:
        """Write the next rows (B, ...). Raises ValueError for those of another shape."""
        if rows.shape[1:] != self.shape[1:]:
            raise ValueError(f"rows of shape {rows.shape[1:]} among those of {self.shape[1:]}")
        self._file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.written += len(rows)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file as file:
            if kind is None:
                file.flush()
                os.fsync(file.fileno())
        if kind is None and self.written != self.shape[0]:
            raise ValueError(f"{self.written} of {self.shape[0]} rows were written to {self.path}")


def blocks_of(rows: np.ndarray | RowFile) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of a file part by part, each with its first place; those of an array as a whole."""
    return rows.blocks() if isinstance(rows, RowFile) else iter([(0, rows)])


def origin(rows: np.ndarray | RowFile, source: str, row: int) -> tuple[str, int]:
    """The file of a row, and its number there, for messages; ``source`` where it is that of all rows."""
    return rows.where(row) if isinstance(rows, RowFile) and rows.sources else (source, row)
