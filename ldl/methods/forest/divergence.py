"""Split search by log-loss: the sum over draws of KL(row || mean of its side), for vectors instead of two clusters.

With S the sum of the distributions of n draws, the divergences from S/n sum to n ln n - sum_c S_c ln S_c, less the rows'
own entropies, which no split changes and which are left out: a side's impurity is n times the entropy of its mean.
Ties, midpoints and what counts as constant are those of the searches for clusters (``ordered``, ``unordered``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ldl.methods.forest.columns import midpoint
from ldl.methods.forest.compiled import inlined
from ldl.methods.forest.impurity import Node, Split, better
from ldl.methods.forest.ordered import default_rows
from ldl.methods.forest.unordered import FEW, between


class Mass(NamedTuple):
    """The distributions of a tree's rows, and room for sums over them.

    Attributes:
        codes: (N, C) float32, the distributions of the training set.
        samples: Row of ``codes`` of each row of the tree.
        weights: How often the bootstrap drew each row of the tree.
        total: (C,) float64, the sum over the draws of the node at hand.
        left: (C,) float64, that of the left side of a candidate.
        order: Rows of the node at hand by their bins, int32, as many as the tree has.
        ends: (2, as many) float32, the smallest and the largest value in the bin of each.
    """

    codes: np.ndarray
    samples: np.ndarray
    weights: np.ndarray
    total: np.ndarray
    left: np.ndarray
    order: np.ndarray
    ends: np.ndarray


@inlined
def add_row(sums: np.ndarray, mass: Mass, row: int, sign: int) -> int:
    """Add a row of the tree to ``sums`` (C,), with its draws times ``sign``; its draws."""
    sample, draws = mass.samples[row], mass.weights[row]
    for c in range(len(sums)):
        sums[c] += sign * draws * np.float64(mass.codes[sample, c])
    return draws


@inlined
def node_divergence(mass: Mass, table: np.ndarray, rows: np.ndarray) -> float:
    """Fill in ``mass.total`` of a node with these rows; its impurity."""
    mass.total[:] = 0
    draws = 0
    for row in rows:
        draws += add_row(mass.total, mass, row, 1)
    logs = 0.0
    for mass_c in mass.total:
        logs += _x_log_x(mass_c)
    return table[draws] - logs


@inlined
def _x_log_x(x: float) -> float:
    # What remains of a label after rounding may be below 0.
    return x * math.log(x) if x > 0 else 0.0


@inlined
def _split_divergence(mass: Mass, table: np.ndarray, node: Node, left: int) -> float:
    logs = 0.0
    for c in range(len(mass.left)):
        logs += _x_log_x(mass.left[c]) + _x_log_x(mass.total[c] - mass.left[c])
    return table[left] + table[node.n - left] - logs


@inlined
def ordered_feature(
    ids: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    packed: np.ndarray,
    table: np.ndarray,
    node: Node,
    mass: Mass,
    f: int,
    lo: int,
    hi: int,
    default: float,
    best: Split,
) -> Split:
    """The best of all midpoints of feature f, or ``best``; arguments as for ``exact_feature``.

    Each listed row has a value from ``low`` to ``high``, both rising; rows with the same belong together.
    """
    place, draws, _ = default_rows(ids, low, packed, node, lo, hi, default)
    if draws:
        unlisted = mass.total.copy()
        for k in range(lo, hi):
            add_row(unlisted, mass, ids[k], -1)
    mass.left[:] = 0
    i, left, missing = lo, 0, draws > 0
    while i < hi or missing:
        if missing and i == place:
            below, missing, left = default, False, left + draws
            for c in range(len(mass.left)):
                mass.left[c] += unlisted[c]
        else:
            below, left, i = high[i], left + add_row(mass.left, mass, ids[i], 1), i + 1
        if node.n - left < max(node.min_leaf, 1):
            break
        above = default if missing and i == place else low[i]
        if below < above and left >= node.min_leaf:
            best = better(best, node, _split_divergence(mass, table, node, left), f, midpoint(below, above))
    return best


@inlined
def binned_feature(
    codes: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    rows: np.ndarray,
    packed: np.ndarray,
    table: np.ndarray,
    node: Node,
    mass: Mass,
    f: int,
    best: Split,
) -> tuple[Split, bool]:
    """The best midpoint between occupied bins of feature f, or ``best``; and whether f is constant in these ``rows``.

    Bins have ``codes`` and go from ``low`` to ``high``. The rows are sorted by bin, and then are as any in order.
    """
    count, samples, order = len(rows), mass.samples, mass.order
    if count <= FEW:
        for i in range(count):
            code, k = codes[samples[rows[i]]], i
            while k > 0 and codes[samples[order[k - 1]]] > code:
                order[k] = order[k - 1]
                k -= 1
            order[k] = rows[i]
    else:
        place = np.zeros(len(low) + 1, np.int64)
        for row in rows:
            place[np.int64(codes[samples[row]]) + 1] += 1
        for code in range(len(low)):
            place[code + 1] += place[code]
        for row in rows:
            code = np.int64(codes[samples[row]])
            order[place[code]] = row
            place[code] += 1
    if codes[samples[order[0]]] == codes[samples[order[count - 1]]]:
        return best, True
    for i in range(count):
        code = codes[samples[order[i]]]
        mass.ends[0, i], mass.ends[1, i] = low[code], high[code]
    ends, none = mass.ends, np.float32(np.nan)
    return ordered_feature(order, ends[0], ends[1], packed, table, node, mass, f, 0, count, none, best), False


@inlined
def drawn_feature(
    column: np.ndarray,
    own: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    node: Node,
    mass: Mass,
    f: int,
    share: float,
    best: Split,
) -> tuple[Split, bool]:
    """One threshold, as for ``random_feature``; ``own`` are the node's rows, ``rows`` the same in the tree's numbering.

    Only the smaller side is summed up.
    """
    threshold, constant = between(column, own, share)
    if constant:
        return best, True
    count, few = len(own), 0
    for i in range(count):
        mass.order[few] = rows[i]
        few += column[own[i]] <= threshold
    goes_left = 2 * few <= count
    if not goes_left:
        few = 0
        for i in range(count):
            mass.order[few] = rows[i]
            few += column[own[i]] > threshold
    mass.left[:] = 0
    draws = 0
    for k in range(few):
        draws += add_row(mass.left, mass, mass.order[k], 1)
    left = draws if goes_left else node.n - draws
    if left < node.min_leaf or node.n - left < node.min_leaf:
        return best, False
    # Impurity is the same from either side, but for the order of ``left`` and the rest.
    return better(best, node, _split_divergence(mass, table, node, draws), f, threshold), False
