"""Shannon entropy of two clusters from integer counts (Chen et al. 2018, Eq. 2).

Counts are draws of the bootstrap. ``n`` rows of which ``ones`` are in cluster 1 have the impurity
n * Ent = n ln n - ones ln ones - (n - ones) ln(n - ones), so that the gain of a split is
(impurity(node) - impurity(left) - impurity(right)) / n: three numbers of a table a side, no logarithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.methods.forest.compiled import inlined

TIE = 1e-9
"""Gains that differ by less, in nats, are a tie: the candidate that came first stays."""


class Node(NamedTuple):
    """What a search must know of a node.

    Attributes:
        n: Draws in it.
        ones: Those in cluster 1.
        count: Its rows.
        min_leaf: Draws that each side of a split must keep.
        impurity: Its own, which a split must lower.
    """

    n: int
    ones: int
    count: int
    min_leaf: int
    impurity: float


class Split(NamedTuple):
    """The best split found so far: its feature (int32, -1 for none) and float32 threshold.

    ``impurity`` is that of both its sides, which the next must beat; ``evaluations`` is how many have been computed.
    """

    feature: int
    threshold: float
    impurity: float
    evaluations: int


def log_table(size: int) -> np.ndarray:
    """k ln k for k = 0..size, float64."""
    k = np.arange(size + 1, dtype=np.float64)
    return k * np.log(np.maximum(k, 1.0))


@inlined
def impurity(table: np.ndarray, n: int, ones: int) -> float:
    """n times the entropy, in nats. Swapping the clusters gives the same bits."""
    return table[n] - (table[ones] + table[n - ones])


@inlined
def split_impurity(table: np.ndarray, node: Node, left: int, left_ones: int) -> float:
    """Impurity of both sides together. Swapping the sides gives the same bits."""
    return impurity(table, left, left_ones) + impurity(table, node.n - left, node.ones - left_ones)


@inlined
def better(best: Split, node: Node, score: float, feature: int, threshold: float) -> Split:
    """The best split after one more was computed, of impurity ``score``."""
    if score < best.impurity - TIE * node.n:
        return Split(feature, threshold, score, best.evaluations + 1)
    return Split(best.feature, best.threshold, best.impurity, best.evaluations + 1)
