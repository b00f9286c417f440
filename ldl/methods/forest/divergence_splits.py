"""Splits of a node by log-loss: the sum over draws of KL(row || mean of its side).

With the sum S of the distributions of n draws, the divergences from S/n sum to n ln n - sum_c S_c ln S_c, less the
entropies of the rows. No split changes these, so they are left out: impurity is n times the entropy of the mean. Ties,
midpoints and constant features are handled as in :mod:`.cluster_splits`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ldl.methods.forest.cluster_splits import SORTED_ROWS, TIE, Node, Split, better, between, default_rows
from ldl.methods.numba_kernels import inlined, midpoint

MARGIN = 1e-6
"""Rounding error of a bound per draw, as float32 distributions do not sum to exactly 1."""


class Mass(NamedTuple):
    """The distributions of the rows of a tree, and scratch memory for sums over them.

    Attributes:
        codes: (N, C) float32, the distributions of the training set.
        samples: Row of ``codes`` of each row of the tree.
        weights: Draws of each row of the tree.
        entropies: The entropy of each row of the tree times its draws, float64.
        total: (C,) float64, the sum over the draws of the current node.
        left: (C,) float64, the sum over the left side of a candidate.
        start: (C,) float64, the value of ``left`` before a block.
        unlisted: (C,) float64, the sum over the draws with the default value.
        order: Rows of the current node by their bins, int32, one entry more than the tree has rows.
        ends: (2, rows of the tree) float32, the smallest and the largest value in the bin of each.
    """

    codes: np.ndarray
    samples: np.ndarray
    weights: np.ndarray
    entropies: np.ndarray
    total: np.ndarray
    left: np.ndarray
    start: np.ndarray
    unlisted: np.ndarray
    order: np.ndarray
    ends: np.ndarray


@inlined
def make_mass(codes: np.ndarray, samples: np.ndarray, weights: np.ndarray, used: bool) -> Mass:
    """Return the distributions of the rows of a tree; without scratch memory unless they are ``used``."""
    size, width = len(samples) if used else 0, codes.shape[1]
    entropies = np.zeros(size)
    for i in range(size):
        for c in range(width):
            entropies[i] -= weights[i] * _x_log_x(np.float64(codes[samples[i], c]))
    total, left, start, unlisted = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    order, ends = np.empty(size + 1, np.int32), np.empty((2, size), np.float32)
    return Mass(codes, samples, weights, entropies, total, left, start, unlisted, order, ends)


@inlined
def add_row(sums: np.ndarray, mass: Mass, row: int, sign: int) -> int:
    """Add a row of the tree, times its draws and ``sign``, to ``sums`` (C,), and return its draws."""
    sample, draws = mass.samples[row], mass.weights[row]
    for c in range(len(sums)):
        sums[c] += sign * draws * np.float64(mass.codes[sample, c])
    return draws


@inlined
def node_divergence(mass: Mass, table: np.ndarray, rows: np.ndarray) -> float:
    """Fill ``mass.total`` for a node with these rows, and return its impurity."""
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
    # After rounding, the rest of a label may be below 0.
    return x * math.log(x) if x > 0 else 0.0


@inlined
def _left(mass: Mass, table: np.ndarray, draws: int) -> float:
    logs = 0.0
    for c in range(len(mass.left)):
        logs += _x_log_x(mass.left[c])
    return table[draws] - logs


@inlined
def _right(mass: Mass, table: np.ndarray, draws: int) -> float:
    logs = 0.0
    for c in range(len(mass.left)):
        logs += _x_log_x(mass.total[c] - mass.left[c])
    return table[draws] - logs


@inlined
def ordered_feature(
    ids: np.ndarray, low: np.ndarray, high: np.ndarray, packed: np.ndarray, table: np.ndarray, node: Node, mass: Mass,
    f: int, lo: int, hi: int, default: float, best: Split,
) -> Split:  # fmt: skip
    """Return the best of all midpoints of feature f, or ``best``. For the arguments, see :func:`.exact_feature`.

    Each listed row has a value from ``low`` to ``high``, both rising; rows with equal values belong together.

    The divergence of a side grows with its rows, so inside a block neither side has less than at the end of the block
    where it is smaller. A block that cannot beat ``best`` by this bound is skipped, and the search stays exact.
    """
    left_sums, start, block = mass.left, mass.start, min(32, max(4, node.count // 32))
    position, draws, _ = default_rows(ids, low, packed, node, lo, hi, default)
    if draws:
        mass.unlisted[:] = mass.total
        for k in range(lo, hi):
            add_row(mass.unlisted, mass, ids[k], -1)
    left_sums[:] = 0
    # Up to the default value, which follows if any row has it, then on to the end.
    i, stop, left, before = lo, position, 0, 0.0
    after = default if draws else np.float32(np.nan)
    while i < hi:
        if i == stop:
            left += draws
            for c in range(len(left_sums)):
                left_sums[c] += mass.unlisted[c]
            before, behind = _left(mass, table, left), _right(mass, table, node.n - left)
            if draws and left >= node.min_leaf and node.n - left >= node.min_leaf:
                best = better(best, node, before + behind, f, midpoint(default, low[i]))
            stop, after = hi, np.float32(np.nan)
        end = min(i + block, stop)
        start[:] = left_sums
        more, entropy = 0, 0.0
        for k in range(i, end):
            more += add_row(left_sums, mass, ids[k], 1)
            entropy += mass.entropies[ids[k]]
        at_end, behind = node.impurity, 0.0
        if left + more < node.n:
            at_end, behind = _left(mass, table, left + more), _right(mass, table, node.n - left - more)
        if before + behind + entropy - MARGIN * node.n < best.impurity - TIE * node.n:
            left_sums[:] = start
            for k in range(i, end):
                left += add_row(left_sums, mass, ids[k], 1)
                above = low[k + 1] if k + 1 < stop else after
                if high[k] < above and left >= node.min_leaf and node.n - left >= node.min_leaf:
                    last = k + 1 == end
                    score = at_end + behind if last else _left(mass, table, left) + _right(mass, table, node.n - left)
                    best = better(best, node, score, f, midpoint(high[k], above))
            more = 0
        i, left, before = end, left + more, at_end
    return best


@inlined
def binned_feature(
    codes: np.ndarray, low: np.ndarray, high: np.ndarray, rows: np.ndarray, packed: np.ndarray, table: np.ndarray,
    node: Node, mass: Mass, f: int, best: Split,
) -> tuple[Split, bool]:  # fmt: skip
    """Return the best midpoint between occupied bins of feature f, or ``best``, and whether f is constant in ``rows``.

    Bins have ``codes`` and extend from ``low`` to ``high``. The rows are sorted by bin and searched as ordered rows.
    """
    count, samples, order = len(rows), mass.samples, mass.order
    if count <= SORTED_ROWS:
        for i in range(count):
            code, k = codes[samples[rows[i]]], i
            while k > 0 and codes[samples[order[k - 1]]] > code:
                order[k] = order[k - 1]
                k -= 1
            order[k] = rows[i]
    else:
        start = np.zeros(len(low) + 1, np.int64)
        for row in rows:
            start[np.int64(codes[samples[row]]) + 1] += 1
        for code in range(len(low)):
            start[code + 1] += start[code]
        for row in rows:
            code = np.int64(codes[samples[row]])
            order[start[code]] = row
            start[code] += 1
    if codes[samples[order[0]]] == codes[samples[order[count - 1]]]:
        return best, True
    for i in range(count):
        code = codes[samples[order[i]]]
        mass.ends[0, i], mass.ends[1, i] = low[code], high[code]
    ends, none = mass.ends, np.float32(np.nan)
    return ordered_feature(order, ends[0], ends[1], packed, table, node, mass, f, 0, count, none, best), False


@inlined
def drawn_feature(
    column: np.ndarray, node_rows: np.ndarray, rows: np.ndarray, table: np.ndarray, node: Node, mass: Mass, f: int,
    share: float, best: Split,
) -> tuple[Split, bool]:  # fmt: skip
    """Evaluate one threshold as :func:`.random_feature` does, summing only the smaller side.

    ``node_rows`` are the rows of the node, ``rows`` the same rows in the numbering of the tree.
    """
    threshold, constant = between(column, node_rows, share)
    if constant:
        return best, True
    count, few = len(node_rows), 0
    for i in range(count):
        mass.order[few] = rows[i]
        few += column[node_rows[i]] <= threshold
    goes_left = 2 * few <= count
    if not goes_left:
        few = 0
        for i in range(count):
            mass.order[few] = rows[i]
            few += column[node_rows[i]] > threshold
    mass.left[:] = 0
    draws = 0
    for k in range(few):
        draws += add_row(mass.left, mass, mass.order[k], 1)
    left = draws if goes_left else node.n - draws
    if left < node.min_leaf or node.n - left < node.min_leaf:
        return best, False
    # The impurity is symmetric in both sides, but for the order of ``left`` and the rest.
    score = _left(mass, table, draws) + _right(mass, table, node.n - draws)
    return better(best, node, score, f, threshold), False
