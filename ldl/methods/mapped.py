"""Tables that are larger than memory: maps of files, read block by block, whose pages are given back."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError

BLOCK = 1 << 26
"""Bytes of a table that are read at a time."""
LARGE = 1 << 29
"""Bytes from which scratch memory is a file."""
Table = TypeVar("Table", np.ndarray, Tensor)


def scratch(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Memory that nobody keeps, zeros; a large one is a file in ``scratch`` of ``LDL_CACHE``, or of ``~/.cache/ldl``.

    The system can then take its pages back when others need them. The file has no name: it goes with the array, or
    with the process, however that ends. Raises LDLError where it has no room.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(shape, dtype)
    folder = Path(os.environ.get("LDL_CACHE") or Path.home() / ".cache" / "ldl") / "scratch"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(size)
            if sys.platform == "linux":
                # A full disk is an error here; later it would end the process.
                os.posix_fallocate(file.fileno(), 0, size)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        raise LDLError(
            f"{folder} cannot take {size / 1e9:.1f} GB for the time of the fit ({error.strerror}); make room there, or "
            "set LDL_CACHE to another folder"
        ) from None


def blocks(table: Table, size: int | None = None) -> Iterator[tuple[int, Table]]:
    """The rows of a table in blocks of about ``size`` bytes, ``BLOCK``, each after the number of its first row.

    Where the table lies in a map of a file, the pages of a block no longer count as memory of this process once the
    next one is asked for.
    """
    rows = max(1, (size or BLOCK) // max(1, table.nbytes // max(1, len(table))))
    drops = may_drop(table)
    for first in range(0, len(table), rows):
        block = table[first : first + rows]
        yield first, block
        if drops:
            _drop(block)


def take(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Some rows of a table, rising, as a table of their own, in :func:`scratch` memory."""
    taken = scratch((len(rows), *table.shape[1:]), table.dtype)
    for first, block in blocks(table):
        begin, end = np.searchsorted(rows, [first, first + len(block)])
        taken[begin:end] = block[rows[begin:end] - first]
    return taken


def release(table: np.ndarray | Tensor) -> None:
    """Give back the pages of a table in a map of a file; they are read anew where they are asked for."""
    if may_drop(table):
        _drop(table)


def may_drop(table: np.ndarray | Tensor) -> bool:
    """Whether a table lies in a map of a file, in pages that equal the file's: what was written in private would go."""
    if table.nbytes < BLOCK:
        return False  # too few to look
    address, found = _address(table), False
    try:
        with open("/proc/self/smaps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                name, *rest = line.split()
                if not name.endswith(":"):
                    if found:
                        return True
                    start, stop = (int(end, 16) for end in name.split("-"))
                    # Permissions, offset, device and inode, which is 0 for memory without a file.
                    found = start <= address and address + table.nbytes <= stop and rest[3] != "0"
                elif found and name in ("Anonymous:", "Swap:") and rest[0] != "0":
                    return False
    except OSError:
        pass  # a system without /proc keeps the pages as long as it likes
    return found


def kept(table: Tensor, dtype: torch.dtype) -> Tensor:
    """A table for a head to keep, in this type: a copy of its own, unless the table lies in a map of a file."""
    return table.to(dtype, copy=not may_drop(table))


def _address(table: np.ndarray | Tensor) -> int:
    if isinstance(table, Tensor):
        return table.data_ptr() if table.device.type == "cpu" else 0
    return table.ctypes.data


def _drop(table: np.ndarray | Tensor) -> None:
    start, page = _address(table), mmap.PAGESIZE
    first, last = -(-start // page) * page, (start + table.nbytes) // page * page
    if last > first:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED)
