"""Columns of a data set, one entry an instance: tensors, or what is made of some rows when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ldl.data.row_file import RowFile


class Column(Protocol):
    """What a batch takes some entries of; every tensor is one."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Tensor, /) -> Tensor: ...


@dataclass(frozen=True)
class Made:
    """Entries that are made of rows when they are asked for, such as scaled features of a table on disk.

    Attributes:
        rows: The rows, in a file or an array (N, ...).
        make: Makes entries (B, ...) of rows (B, ...), of which it is also told the ``numbers`` (B,).
    """

    rows: RowFile | np.ndarray
    make: Callable[..., Tensor]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        numbers = rows.numpy()
        return self.make(self.rows[numbers], numbers=numbers)


def pieces(column: Column) -> Iterator[Tensor]:
    """A tensor as a whole; of another column so many entries at a time as may be held in memory."""
    if isinstance(column, Tensor):
        yield column
    else:
        yield from (column[rows] for rows in torch.arange(len(column)).split(2**16))
