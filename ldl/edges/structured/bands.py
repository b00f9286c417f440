"""The rows of an image shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

Work = Callable[[int, int], None]
"""Does the rows from the first up to the second number, without it."""
Bands = Callable[[Work, int], None]
"""Does a work on so many rows, and returns when all is done."""


def whole(work: Work, rows: int) -> None:
    """All rows in this thread."""
    work(0, rows)


@contextmanager
def in_bands(threads: int) -> Iterator[Bands]:
    """As many bands of rows as ``threads``, all at once."""
    if threads == 1:
        yield whole
        return
    with ThreadPoolExecutor(threads) as pool:

        def share(work: Work, rows: int) -> None:
            cuts = np.linspace(0, rows, threads + 1).astype(int).tolist()
            list(pool.map(work, cuts[:-1], cuts[1:]))

        yield share
