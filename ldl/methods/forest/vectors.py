"""Sums over two rows, as parts of hot loops."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import inlined_fast


@inlined_fast
def dot(one: np.ndarray, two: np.ndarray) -> float:
    """The scalar product of two rows, in the type of the first."""
    total = one.dtype.type(0)
    for p in range(len(one)):
        total += one[p] * two[p]
    return total


@inlined_fast
def add_row(total: np.ndarray, row: np.ndarray, factor: float) -> None:
    """Add ``factor`` times a row to ``total``."""
    for p in range(len(total)):
        total[p] += factor * row[p]
