"""Where the rows that were binned end in a boosted tree: told by their bins, not by their values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.bins import Bins
from ldl.methods.forest.boosted_tree import BoostedTree
from ldl.methods.forest.compiled import compiled


class CodedTree(NamedTuple):
    """A tree whose splits are told by bins; the rest as in :class:`.boosted_tree.BoostedTree`.

    Attributes:
        below: (M,) int32, the last bin that lies wholly to the left, -1 for none.
        torn: (M,) int32, the bin that the threshold goes through, -1 for none. No row that the tree has seen is in it,
            but others may be: their values say where they go.
    """

    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    child: np.ndarray
    values: np.ndarray
    below: np.ndarray
    torn: np.ndarray


def code_tree(tree: BoostedTree, bins: Bins) -> CodedTree:
    """The tree on the bins that it was grown on."""
    below, torn = np.full((2, len(tree.feature)), -1, np.int32)
    for node in np.flatnonzero(tree.feature >= 0):
        f, threshold = tree.feature[node], tree.threshold[node]
        ends = bins.high[f, : bins.filled[f]]
        next_ = int(np.searchsorted(ends, threshold, "right"))
        below[node] = next_ - 1
        if next_ < len(ends) and bins.low[f, next_] <= threshold:
            torn[node] = next_
    return CodedTree(*tree[:5], below, torn)


@compiled
def add_coded(
    bins: Bins, features: np.ndarray, rows: np.ndarray, tree: CodedTree, first: int, last: int, scores: np.ndarray,
    label: int,
) -> None:  # fmt: skip
    """Add the leaves that the binned rows first..last - 1 reach to ``scores`` (n, C) of all of them.

    ``features`` (N, F) are what was binned: its rows ``rows``, int32, or all where that is empty. Leaves of one step
    are added to the scores of ``label``.
    """
    column = label if tree.values.shape[1] == 1 else 0
    for i in range(first, last):
        at = 0
        while tree.feature[at] >= 0:
            f = tree.feature[at]
            code = np.int64(bins.codes[f, i])
            if code == bins.filled[f]:
                left = tree.missing_left[at]
            elif code == tree.torn[at]:
                left = features[rows[i] if len(rows) else i, f] <= tree.threshold[at]
            else:
                left = code <= tree.below[at]
            at = tree.child[at] + (0 if left else 1)
        leaf = tree.child[at]
        for c in range(tree.values.shape[1]):
            scores[i, column + c] += tree.values[leaf, c]
