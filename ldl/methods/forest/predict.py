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
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.flat import FlatForest
from ldl.methods.forest.gathers import follow
from ldl.methods.traced import pick, traced

ROWS = 4096
"""Rows that go through all trees together, by gathers."""
CACHED = 1 << 17
"""Numbers of float32 that fit into a core's cache, with room for a tree."""
WORTH_A_THREAD = 20_000
"""Rows times trees below which starting threads costs more than it saves."""


def reach(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """Leaf of every row in every tree, by gathers: (B, F) gives (B, K) int32, rows of ``forest.values``.

    Args:
        features: float32.
        forest: On the same device.
        depth: Splits on the longest path.

    Raises:
        LDLError: a split asks for a feature that is NaN.
    """
    leaves, missing = follow(features, *forest[:4], depth)
    if missing.any():
        raise _refusal(int(missing.nonzero()[0]))
    return leaves.int()


def average(features: Tensor, forest: FlatForest, depth: int, threads: int = 1) -> Tensor:
    """Mean over the trees of the values of the leaves reached: (B, F) gives (B, C) in the values' dtype.

    ``threads`` of a CPU share the rows; arguments and errors are else those of :func:`reach`. In a recorded graph rows
    that it would refuse are NaN.
    """
    if traced():
        leaves, missing = follow(features, *forest[:4], depth)
        return torch.where(missing[:, None], torch.nan, pick(forest.values, leaves).mean(1))
    if features.device.type == "cpu" and forest.values.dtype in (torch.float32, torch.float64):
        trees = len(forest.roots)
        threads = max(1, min(threads, len(features) * trees // WORTH_A_THREAD))
        return average_without(features, forest, np.empty((trees, 0), np.uint8), threads)
    return torch.cat([average_by_gathers(part, forest, depth) for part in features.split(ROWS)])


def average_by_gathers(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """:func:`average` with torch alone."""
    leaves = reach(features, forest, depth)
    total = forest.values.new_zeros(len(features), forest.values.shape[1])
    for column in leaves.unbind(1):
        total += forest.values.index_select(0, column)
    return total / leaves.shape[1]


def average_without(features: Tensor, forest: FlatForest, skip: np.ndarray, threads: int = 1) -> Tensor:
    """Mean (B, C) over those trees that did not see the row in training; NaN where all did.

    ``features`` (B, F) float32 and the forest are on a CPU. ``skip`` (K, B / 8, rounded up) uint8 has a bit a row, the
    lowest first, set where the tree has seen it; of shape (K, 0) it skips no tree. ``threads`` share the rows.
    """
    arrays, rows = [tensor.detach().numpy() for tensor in forest], features.detach().contiguous().numpy()
    sums = np.zeros((len(rows), forest.values.shape[1]), arrays[-1].dtype)

    def fill(start: int, stop: int) -> None:
        bad = _average(
            rows[start:stop], *arrays, np.ascontiguousarray(skip[:, start // 8 : -(-stop // 8)]), sums[start:stop]
        )
        if bad >= 0:
            raise _refusal(start + bad)

    if threads == 1:
        fill(0, len(rows))
    else:
        # Whole bytes of bits for each.
        cuts = np.linspace(0, len(rows), threads + 1).astype(int) // 8 * 8
        cuts[-1] = len(rows)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, cuts, cuts[1:]))
    return torch.from_numpy(sums)


def _refusal(row: int) -> LDLError:
    return LDLError(f"a tree cannot sort row {row}: a feature that it asks for is NaN; fill missing features")


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
            root, count, met = roots[k], 0, -1
            for i in range(first, last):
                node[i] = -1
                if not (skips and skip[k, i >> 3] >> (i & 7) & 1):
                    node[i] = root
                    active[count] = i
                    count += 1
            # All go one level at a time: the next row's memory is fetched while this one's is waited for.
            while count and feature[root] >= 0:
                place = 0
                for a in range(count):
                    i = active[a]
                    at = node[i]
                    value = rows[i, feature[at]]
                    met = i if value != value else met
                    at = child[at] + np.int64(value > threshold[at])
                    node[i] = at
                    active[place] = i
                    place += feature[at] >= 0
                count = place
            bad = max(bad, met)
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
