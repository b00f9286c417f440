"""Columns of a data set, one entry an instance: tensors, or what is made of some rows when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from ldl.data.row_file import RowFile


class Column(Protocol):
    """What a batch takes some entries of; every tensor is one."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Tensor, /) -> Tensor: ...


@runtime_checkable
class Foreseeing(Protocol):
    """What reads faster where it knows beforehand what it will be asked for."""

    def foresee(self, coming: Callable[[int], np.ndarray]) -> None:
        """Be told the rows (M,) of the next batches, the one at hand first, as many as have a wanted number of rows."""


AHEAD = 2**26
"""Bytes of a column that are read ahead."""


@dataclass
class Made:
    """Entries that are made of rows when they are asked for, such as scaled features of a table on disk.

    Attributes:
        rows: The rows, in a file or an array (N, ...).
        make: Makes entries (B, ...) of rows (B, ...), of which it is also told the ``numbers`` (B,).
    """

    rows: RowFile | np.ndarray
    make: Callable[..., Tensor]

    def __post_init__(self) -> None:
        self._forget()

    def __reduce__(self) -> tuple[type[Made], tuple[RowFile | np.ndarray, Callable[..., Tensor]]]:
        return Made, (self.rows, self.make)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        numbers = rows.numpy()
        if not self._is_ahead(numbers):
            return self.make(self.rows[numbers], numbers=numbers)
        read = self._read[self._next : self._next + len(numbers)]
        self._next += len(numbers)
        return self.make(read, numbers=numbers)

    def foresee(self, coming: Callable[[int], np.ndarray]) -> None:
        """Read the rows of many batches at once, which lie closer to each other in the file than those of one."""
        if isinstance(self.rows, RowFile) and not self._is_ahead(coming(1)):
            self._forget()
            self._numbers = coming(AHEAD * len(self) // self.rows.nbytes)
            self._read = self.rows[self._numbers]

    def _is_ahead(self, numbers: np.ndarray) -> bool:
        return np.array_equal(self._numbers[self._next : self._next + len(numbers)], numbers) and len(numbers) > 0

    def _forget(self) -> None:
        self._numbers, self._read, self._next = np.empty(0, np.int64), np.empty(0), 0


def pieces(column: Column) -> Iterator[Tensor]:
    """A tensor as a whole; of another column so many entries at a time as may be held in memory."""
    if isinstance(column, Tensor):
        yield column
    else:
        yield from (column[rows] for rows in torch.arange(len(column)).split(2**16))
