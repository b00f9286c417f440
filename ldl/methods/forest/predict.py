"""Which leaf rows reach, and the mean of what those leaves hold: by numba on a CPU, by gathers on any device.

Both compare float32 features with the same thresholds, so a row reaches the same leaf; sums run over the trees in
order, so the means are the same too. A row for which a split asks for a NaN is refused; other NaN do no harm.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.methods.forest.compiled import compiled, inlined
from ldl.methods.forest.flat import FlatForest

ROWS = 4096
"""Rows that go through all trees together, by gathers."""
CACHED = 1 << 17
"""Numbers of float32 that fit into a core's cache, with room for a tree."""
WORTH_A_THREAD = 20_000
"""Rows times trees below which starting threads costs more than it saves."""


def reach(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """Leaf of every row in every tree: (B, F) gives (B, K) int32, rows of ``forest.values``.

    Args:
        features: float32.
        forest: On the same device.
        depth: Splits on the longest path.

    Raises:
        LDLError: a split asks for a feature that is NaN.
    """
    if features.device.type == "cpu":
        leaves = np.empty((len(features), len(forest.roots)), np.int32)
        _refuse(_reach(features.contiguous().numpy(), *(tensor.numpy() for tensor in forest[:4]), leaves))
        return torch.from_numpy(leaves)
    return reach_by_gathers(features, forest, depth)


def reach_by_gathers(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """:func:`reach` with torch alone."""
    node = forest.roots.long().expand(len(features), -1)
    missing = torch.zeros_like(node, dtype=torch.bool)
    for _ in range(depth):
        feature = forest.feature[node]
        value = features.gather(1, feature.clamp_min(0).long())
        missing |= value.isnan() & (feature >= 0)
        node = torch.where(feature >= 0, forest.child[node] + (value > forest.threshold[node]), node)
    bad = missing.any(1).nonzero()
    _refuse(int(bad[0]) if len(bad) else -1)
    return forest.child[node]


def average(features: Tensor, forest: FlatForest, depth: int, threads: int = 1) -> Tensor:
    """Mean over the trees of the values of the leaves reached: (B, F) gives (B, C) in the values' dtype.

    Args:
        features: float32.
        forest: On the same device.
        depth: Splits on the longest path.
        threads: Threads of a CPU.

    Raises:
        LDLError: a split asks for a feature that is NaN.
    """
    if features.device.type == "cpu" and forest.values.dtype in (torch.float32, torch.float64):
        arrays, rows = _arrays(forest), features.contiguous().numpy()
        sums = np.zeros((len(rows), forest.values.shape[1]), arrays[-1].dtype)
        skip = np.empty((len(arrays[0]), 0), np.uint8)
        threads = max(1, min(threads, len(rows) * len(arrays[0]) // WORTH_A_THREAD))
        _in_threads(rows, arrays, skip, sums, threads)
        return torch.from_numpy(sums)
    return torch.cat([average_by_gathers(part, forest, depth) for part in features.split(ROWS)])


def average_by_gathers(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """:func:`average` with torch alone."""
    leaves = reach_by_gathers(features, forest, depth)
    total = forest.values.new_zeros(len(features), forest.values.shape[1])
    for column in leaves.unbind(1):
        total += forest.values.index_select(0, column)
    return total / leaves.shape[1]


def average_without(features: Tensor, forest: FlatForest, skip: np.ndarray, threads: int = 1) -> Tensor:
    """Mean over those trees that did not see the row in training; NaN where all did.

    Args:
        features: (B, F) float32 on a CPU.
        forest: Likewise.
        skip: (K, B) uint8, 1 where the tree has seen the row.
        threads: Threads to use.

    Returns:
        (B, C).
    """
    arrays, rows = _arrays(forest), features.contiguous().numpy()
    sums = np.zeros((len(rows), forest.values.shape[1]), arrays[-1].dtype)
    _in_threads(rows, arrays, skip, sums, threads)
    return torch.from_numpy(sums)


def _arrays(forest: FlatForest) -> list[np.ndarray]:
    return [tensor.detach().numpy() for tensor in forest]


def _in_threads(rows: np.ndarray, arrays: list[np.ndarray], skip: np.ndarray, sums: np.ndarray, threads: int) -> None:
    if threads == 1:
        _refuse(_average(rows, *arrays, skip, sums))
        return
    cuts = np.linspace(0, len(rows), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(_average, rows[a:b], *arrays, np.ascontiguousarray(skip[:, a:b]), sums[a:b])
            for a, b in zip(cuts, cuts[1:])
        ]
        for start, job in zip(cuts, jobs):
            _refuse(job.result(), int(start))


def _refuse(bad: int, start: int = 0) -> None:
    """Raise for row ``bad`` of those from ``start`` on, if it is not negative."""
    if bad >= 0:
        raise LDLError(
            f"a tree cannot sort row {start + bad}: a feature that it asks for is NaN; fill missing features"
        )


@inlined
def _descend(
    rows: np.ndarray,
    active: np.ndarray,
    count: int,
    root: int,
    feature: np.ndarray,
    threshold: np.ndarray,
    child: np.ndarray,
    node: np.ndarray,
) -> int:
    """Lead the rows active[:count] down a tree, to ``node``; a row that meets NaN, or -1.

    All go one level at a time: the next row's memory is fetched while this one's is waited for.
    """
    bad = -1
    for a in range(count):
        node[active[a]] = root
    if feature[root] < 0:
        return bad
    while count:
        place = 0
        for a in range(count):
            i = active[a]
            at = node[i]
            value = rows[i, feature[at]]
            bad = i if value != value else bad
            at = child[at] + np.int64(value > threshold[at])
            node[i] = at
            active[place] = i
            place += feature[at] >= 0
        count = place
    return bad


@compiled
def _reach(
    rows: np.ndarray,
    roots: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    child: np.ndarray,
    leaves: np.ndarray,
) -> int:
    """Fill ``leaves``; a row that meets NaN, or -1."""
    bad = -1
    node, active = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for k in range(len(roots)):
        for i in range(len(rows)):
            active[i] = i
        bad = max(bad, _descend(rows, active, len(rows), roots[k], feature, threshold, child, node))
        for i in range(len(rows)):
            leaves[i, k] = child[node[i]]
    return bad


@compiled
def _average(
    rows: np.ndarray,
    roots: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    child: np.ndarray,
    values: np.ndarray,
    skip: np.ndarray,
    sums: np.ndarray,
) -> int:
    """Fill ``sums`` with the means; a row that meets NaN, or -1."""
    bad = -1
    skips = skip.shape[1] > 0
    trees = np.zeros(len(rows), np.int64)
    # So many rows that they stay in the cache while they go through all trees.
    block = max(16, CACHED // (rows.shape[1] + 2 * values.shape[1]))
    node, active = np.empty(len(rows), np.int64), np.empty(block, np.int64)
    for first in range(0, len(rows), block):
        last = min(first + block, len(rows))
        for k in range(len(roots)):
            count = 0
            for i in range(first, last):
                node[i] = -1
                if not (skips and skip[k, i]):
                    active[count] = i
                    count += 1
            bad = max(bad, _descend(rows, active, count, roots[k], feature, threshold, child, node))
            for i in range(first, last):
                if node[i] >= 0:
                    trees[i] += 1
                    leaf = child[node[i]]
                    for c in range(values.shape[1]):
                        sums[i, c] += values[leaf, c]
        for i in range(first, last):
            for c in range(values.shape[1]):
                sums[i, c] = sums[i, c] / trees[i] if trees[i] else np.nan
    return bad
