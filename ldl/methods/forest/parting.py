"""Parts the rows of a node between its children, in place and in their order."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.columns import Columns
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.impurity import Split
from ldl.methods.forest.search import HISTOGRAM, RANDOM, Rules


@inlined
def partition(ids: np.ndarray, spare: np.ndarray, right: np.ndarray, lo: int, hi: int) -> int:
    """Bring the rows of ids[lo:hi] that go left to the front, both sides in their old order; where the right starts."""
    place, moved = lo, 0
    for i in range(lo, hi):
        row = ids[i]
        ids[place] = row
        spare[moved] = row
        goes = np.int64(right[row])
        place += 1 - goes
        moved += goes
    for i in range(moved):
        ids[place + i] = spare[i]
    return place


@inlined
def partition_listed(
    ids: np.ndarray,
    listed: np.ndarray,
    spare: np.ndarray,
    spare_listed: np.ndarray,
    right: np.ndarray,
    lo: int,
    hi: int,
) -> int:
    """:func:`partition` of rows and their values."""
    place, moved = lo, 0
    for i in range(lo, hi):
        row, value = ids[i], listed[i]
        ids[place], listed[place] = row, value
        spare[moved], spare_listed[moved] = row, value
        goes = np.int64(right[row])
        place += 1 - goes
        moved += goes
    for i in range(moved):
        ids[place + i], listed[place + i] = spare[i], spare_listed[i]
    return place


@inlined
def send(
    columns: Columns, samples: np.ndarray, rows: np.ndarray, split: Split, rules: Rules, right: np.ndarray
) -> None:
    """Say for each row of a node whether it goes right; where some are listed, whether the other ones do."""
    f, cut = split.feature, split.threshold
    for row in rows:
        if rules.search == HISTOGRAM:
            right[row] = columns.low[f, columns.codes[f, samples[row]]] > cut
        elif rules.search == RANDOM:
            right[row] = columns.values[f, samples[row]] > cut
        else:
            right[row] = columns.default[f] > cut


@inlined
def take_listed(
    columns: Columns, samples: np.ndarray, lo: np.ndarray, hi: np.ndarray, ids: np.ndarray, listed: np.ndarray
) -> None:
    """Fill in the listed rows that the tree sees, in its numbering; those of feature f are lo[f]..hi[f]."""
    number = np.full(samples[-1] + 1, -1, np.int32)
    for i in range(len(samples)):
        number[samples[i]] = i
    place = 0
    for f in range(len(lo)):
        lo[f] = place
        for k in range(columns.start[f], columns.start[f + 1]):
            row = columns.rows[k]
            # Written in any case and kept if drawn: a branch on chance is slower.
            ids[place] = number[row] if row < len(number) else -1
            listed[place] = columns.listed[k]
            place += ids[place] >= 0
        hi[f] = place
