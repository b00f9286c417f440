"""Which leaf rows reach, and the mean of what those leaves hold: by numba on a CPU, by gathers on any device.

Both compare float32 features with the same thresholds, so a row reaches the same leaf; sums run over the trees in
order, so the means are the same too.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from ldl.forest.compiled import compiled
from ldl.forest.flat import FlatForest

ROWS = 4096
"""Rows that go through all trees together."""
WORTH_A_THREAD = 20_000
"""Rows times trees below which starting threads costs more than it saves."""


def reach(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """Leaf of every row in every tree: (B, F) gives (B, K) int32, rows of ``forest.values``.

    Args:
        features: float32, without NaN.
        forest: On the same device.
        depth: Splits on the longest path.
    """
    if features.device.type == "cpu":
        leaves = np.empty((len(features), len(forest.roots)), np.int32)
        _reach(features.contiguous().numpy(), *_arrays(forest)[:4], leaves)
        return torch.from_numpy(leaves)
    return reach_by_gathers(features, forest, depth)


def reach_by_gathers(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """:func:`reach` with torch alone."""
    node = forest.roots.long().expand(len(features), -1)
    for _ in range(depth):
        feature = forest.feature[node]
        goes_right = features.gather(1, feature.clamp_min(0).long()) > forest.threshold[node]
        node = torch.where(feature >= 0, forest.child[node] + goes_right, node)
    return forest.child[node]


def average(features: Tensor, forest: FlatForest, depth: int, threads: int = 1) -> Tensor:
    """Mean over the trees of the values of the leaves reached: (B, F) gives (B, C) in the values' dtype.

    Args:
        features: float32, without NaN.
        forest: On the same device.
        depth: Splits on the longest path.
        threads: Threads of a CPU.
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
        _average(rows, *arrays, skip, sums)
        return
    cuts = np.linspace(0, len(rows), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(_average, rows[a:b], *arrays, np.ascontiguousarray(skip[:, a:b]), sums[a:b])
            for a, b in zip(cuts, cuts[1:])
        ]
        for job in jobs:
            job.result()


@compiled
def _reach(
    rows: np.ndarray,
    roots: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    child: np.ndarray,
    leaves: np.ndarray,
) -> None:
    for i in range(rows.shape[0]):
        for k in range(len(roots)):
            node = roots[k]
            while feature[node] >= 0:
                node = child[node] + np.int32(rows[i, feature[node]] > threshold[node])
            leaves[i, k] = child[node]


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
) -> None:
    skips = skip.shape[1] > 0
    seen_by = np.zeros(len(rows), np.int64)
    for first in range(0, len(rows), ROWS):
        last = min(first + ROWS, len(rows))
        for k in range(len(roots)):
            for i in range(first, last):
                if skips and skip[k, i]:
                    seen_by[i] += 1
                    continue
                node = roots[k]
                while feature[node] >= 0:
                    node = child[node] + np.int32(rows[i, feature[node]] > threshold[node])
                leaf = child[node]
                for c in range(values.shape[1]):
                    sums[i, c] += values[leaf, c]
        for i in range(first, last):
            count = len(roots) - seen_by[i]
            for c in range(values.shape[1]):
                sums[i, c] = sums[i, c] / count if count else np.nan
