"""Training rows of fitted heads: read block by block, also from memory-mapped files larger than memory, and checked."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from ldl.errors import LDLError, explaining
from ldl.methods.rows import Rows
from ldl.validation.tensors import off_simplex

READ_BYTES = 1 << 26
"""Bytes of a table that are read at a time."""
SCRATCH_FILE_BYTES = 1 << 29
"""Bytes from which scratch memory is a file."""
ArrayOrTensor = TypeVar("ArrayOrTensor", np.ndarray, Tensor)


def scratch(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return temporary zeros; a large array is a file in ``scratch`` of ``LDL_CACHE`` or of ``~/.cache/ldl``.

    The system can then reclaim its pages. The file has no name: it is removed with the array, or with the process.

    Raises:
        LDLError: The disk is full.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < SCRATCH_FILE_BYTES:
        return np.zeros(shape, dtype)
    folder = Path(os.environ.get("LDL_CACHE") or Path.home() / ".cache" / "ldl") / "scratch"
    size_in_words = f"{size / 1e9:.1f} GB for the time of the fit"
    fix = "free space there or set LDL_CACHE to another folder"
    with explaining(f"{folder} cannot take {size_in_words}", fix, (OSError,)):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(size)
            if sys.platform == "linux":
                # A full disk is an error here; later it would kill the process.
                os.posix_fallocate(file.fileno(), 0, size)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))


def blocks(table: ArrayOrTensor, size: int | None = None) -> Iterator[tuple[int, ArrayOrTensor]]:
    """Yield blocks of rows of about ``size`` bytes (None: ``READ_BYTES``), each with its first row number."""
    rows = max(1, (size or READ_BYTES) // max(1, table.nbytes // max(1, len(table))))
    for first in range(0, len(table), rows):
        yield first, table[first : first + rows]


def take(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return some rows of a table, given by their numbers, as a new table in :func:`scratch` memory."""
    taken = scratch((len(rows), *table.shape[1:]), table.dtype)
    np.take(table, rows, axis=0, out=taken, mode="clip")  # other modes make a copy first
    return taken


CHECKED_BYTES = 1 << 22
"""Bytes that are checked at a time: a mask of all rows would be as large as the features."""


def check_rows(name: str, rows: Rows, missing: bool = False) -> None:
    """Raise LDLError unless there are training rows (N, F) with finite features and targets on the simplex.

    With ``missing``, NaN is accepted as a missing value.
    """
    features, target = rows.features, rows.target
    if features.ndim != 2 or not len(features) or len(features) != len(target):
        raise LDLError(f"{name} is fitted on (N, F) features, N at least 1, got {tuple(features.shape)}")
    check_finite(f"{name} cannot take", features, missing)
    check_targets(name, target)


def check_targets(name: str, target: Tensor) -> None:
    """Raise LDLError for no targets (N, C), or for the first row that is no distribution."""
    if not len(target):
        raise LDLError(f"{name} is fitted on the targets of training rows, one at least, got {tuple(target.shape)}")
    for start, block in blocks(target, CHECKED_BYTES):
        block = block if block.is_floating_point() else block.double()
        if len(wrong := off_simplex(block)):
            row = block[wrong[0]]
            raise LDLError(
                f"{name} cannot take a target of sum {row.sum():g}, least {row.min():g}: training row "
                f"{start + int(wrong[0])}; targets are probabilities, at least 0 and of sum 1: divide by the sum first"
            )


def check_finite(refusal: str, features: Tensor, missing: bool = False) -> None:
    """Raise LDLError, which starts with ``refusal``, for the first of the features (N, F) that is not finite.

    With ``missing``, NaN is accepted.
    """
    for start, block in blocks(features, CHECKED_BYTES):
        block = block.float()
        bad = (block.isinf() if missing else ~block.isfinite()).nonzero()
        if len(bad):
            row, column = start + int(bad[0, 0]), int(bad[0, 1])
            raise LDLError(
                f"{refusal} {float(features[row, column])}: training row {row}, feature {column}; "
                "fill or drop missing and infinite features first"
            )
