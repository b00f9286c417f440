"""Predictions of flat forests: the leaves that rows reach, their mean (forests) and their sum (boosting).

A CPU runs a compiled loop; other devices and recorded graphs take gathers, in which all rows make the same number of
steps in all trees. Both compare float32 features with the same thresholds, so a row reaches the same leaf, and add up
the trees in order, so sums are equal too.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.methods.forest.flat import FlatForest
from ldl.methods.numba_kernels import compiled
from ldl.methods.torch_utils import pick, traced

GATHERED_ROWS = 4096
"""Rows that go through all trees together by gathers."""
ROWS_AT_ONCE = 4096
"""Rows for which it is worth to bring all trees into the cache."""
CACHED_FLOATS = 1 << 17
"""float32 numbers that fit into a core's cache beside a tree."""
WORTH_A_THREAD = 20_000
"""Rows times trees below which starting a thread costs more than it saves."""


def follow(features: Tensor, forest: FlatForest, depth: int) -> tuple[Tensor, Tensor]:
    """Find by gathers the leaf of every row in every tree.

    Args:
        features: (B, F) float32.
        forest: K trees on the same device.
        depth: Splits on the longest path.

    Returns:
        Leaves (B, K), int64, as rows of ``forest.values``, and which rows reach a split on a NaN, (B,).
    """
    rows, trees = features.shape[0], forest.roots.shape[0]
    # A leaf leads to itself, so that all rows make the same steps.
    leaf = forest.feature < 0
    split_by = forest.feature.clamp_min(0).long()
    limit = torch.where(leaf, torch.inf, forest.threshold)
    left = torch.where(leaf, torch.arange(forest.feature.shape[0], device=leaf.device), forest.child.long())
    flat = features.reshape(-1)
    start = torch.arange(rows, device=flat.device).unsqueeze(1).expand(-1, trees).reshape(-1) * features.shape[1]
    node = forest.roots.long().expand(rows, -1).reshape(-1)
    missing = torch.zeros_like(node, dtype=torch.bool)
    for _ in range(depth):
        value = flat.index_select(0, start + split_by.index_select(0, node))
        unknown = value.isnan()
        right = value > limit.index_select(0, node)
        if forest.missing_left is not None:
            right = right | (unknown & ~(forest.missing_left | leaf).index_select(0, node))
        missing = missing | (unknown & ~leaf.index_select(0, node))
        node = left.index_select(0, node) + right.long()
    leaves = forest.child.long().index_select(0, node)
    return leaves.unflatten(0, (rows, trees)), missing.unflatten(0, (rows, trees)).any(1)


def reach(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """Return the leaf of every row in every tree, (B, K) int32. See :func:`follow` for the arguments.

    Raises:
        LDLError: A split needs a feature that is NaN.
    """
    leaves, missing = follow(features, forest, depth)
    if missing.any():
        raise _missing_feature(int(missing.nonzero()[0]))
    return leaves.int()


def average(features: Tensor, forest: FlatForest, depth: int, threads: int = 1) -> Tensor:
    """Return the mean over the trees of the values of the leaves reached, (B, C) float32.

    ``threads`` of a CPU share the rows. For the other arguments and errors, see :func:`reach`. In a recorded graph,
    rows for which it would raise are NaN.
    """
    if traced():
        leaves, missing = follow(features, forest, depth)
        return torch.where(missing[:, None], torch.nan, pick(forest.values, leaves).mean(1))
    if features.device.type == "cpu":
        trees = len(forest.roots)
        threads = max(1, min(threads, len(features) * trees // WORTH_A_THREAD))
        return average_without(features, forest, np.empty((trees, 0), np.uint8), threads)
    return torch.cat([average_by_gathers(block, forest, depth) for block in features.split(GATHERED_ROWS)])


def average_by_gathers(features: Tensor, forest: FlatForest, depth: int) -> Tensor:
    """Compute :func:`average` with torch alone."""
    leaves = reach(features, forest, depth)
    total = forest.values.new_zeros(len(features), forest.values.shape[1])
    for column in leaves.unbind(1):
        total += forest.values.index_select(0, column)
    return total / leaves.shape[1]


def average_without(features: Tensor, forest: FlatForest, skip: np.ndarray, threads: int = 1) -> Tensor:
    """Return the mean (B, C) over the trees that did not see a row in training; NaN if all trees saw it.

    Args:
        features: (B, F) float32, on the CPU.
        forest: On the CPU.
        skip: (K, B / 8, rounded up) uint8 with a bit per row, the lowest first, set if the tree saw the row in
            training; (K, 0) skips no tree.
        threads: Threads that share the rows.
    """
    arrays, rows = forest_arrays(forest)[:5], features.detach().contiguous().numpy()
    sums = np.zeros((len(rows), forest.values.shape[1]), np.float32)

    def fill(start: int, stop: int) -> None:
        skipped = np.ascontiguousarray(skip[:, start // 8 : -(-stop // 8)])
        bad = _average(rows[start:stop], *arrays, skipped, sums[start:stop])
        if bad >= 0:
            raise _missing_feature(start + bad)

    # Whole bytes of bits for each thread.
    cuts = np.linspace(0, len(rows), threads + 1).astype(int) // 8 * 8
    _share_rows(fill, np.append(cuts[:-1], len(rows)))
    return torch.from_numpy(sums)


def add_scores(features: Tensor, forest: FlatForest, scores: Tensor, depth: int, threads: int = 1) -> None:
    """Add the values of the leaves reached, tree by tree, to ``scores`` (B, C) float32, in place.

    ``threads`` of a CPU share the rows (B, F) float32. For the other arguments, see :func:`follow`.
    """
    if traced():
        scores += _sum_of_leaves(features, forest, scores.shape[1], depth)
    elif features.device.type != "cpu":
        for rows, out in zip(features.split(GATHERED_ROWS), scores.split(GATHERED_ROWS)):
            add_by_gathers(rows, forest, out, depth)
    else:
        arrays, rows, out = forest_arrays(forest), features.detach().contiguous().numpy(), scores.numpy()
        threads = max(1, min(threads, len(rows) * len(forest.roots) // WORTH_A_THREAD))
        _share_rows(
            lambda start, stop: add_leaves(rows[start:stop], *arrays, out[start:stop]),
            np.linspace(0, len(rows), threads + 1).astype(int),
        )


def add_by_gathers(features: Tensor, forest: FlatForest, scores: Tensor, depth: int) -> None:
    """Compute :func:`add_scores` with torch alone."""
    if not len(forest.roots):
        return
    labels = scores.shape[1]
    for number, leaves in enumerate(follow(features, forest, depth)[0].unbind(1)):
        step = forest.values.index_select(0, leaves)
        if step.shape[1] == labels:
            scores += step
        else:
            scores[:, number % labels] += step[:, 0]


def _sum_of_leaves(features: Tensor, forest: FlatForest, labels: int, depth: int) -> Tensor:
    """Return the sums (B, ``labels``) of :func:`add_scores` in few operations for a graph, all trees at once."""
    if not len(forest.roots):
        return features.new_zeros(features.shape[0], labels)
    steps = pick(forest.values, follow(features, forest, depth)[0])
    return (steps if steps.shape[2] == labels else steps.reshape(features.shape[0], -1, labels)).sum(1)


def forest_arrays(forest: FlatForest) -> list[np.ndarray]:
    """Return the arrays of a forest on the CPU."""
    return [tensor.detach().numpy() for tensor in forest.buffers().values()]


def _share_rows(one: Callable[[int, int], None], cuts: np.ndarray) -> None:
    """Call a function with the ends of each part of the rows, in one thread per part."""
    if len(cuts) == 2:
        one(cuts[0], cuts[1])
        return
    with ThreadPoolExecutor(len(cuts) - 1) as pool:
        list(pool.map(one, cuts, cuts[1:]))


def _missing_feature(row: int) -> LDLError:
    return LDLError(f"a tree cannot sort row {row}: a feature that it splits by is NaN; fill missing features")


@compiled
def _average(
    rows: np.ndarray, roots: np.ndarray, feature: np.ndarray, threshold: np.ndarray, child: np.ndarray,
    values: np.ndarray, skip: np.ndarray, sums: np.ndarray,
) -> int:  # fmt: skip
    """Fill ``sums`` with the means; return the last row that reaches a split on a NaN, or -1."""
    bad = -1
    skips = skip.shape[1] > 0
    trees = np.zeros(len(rows), np.int64)
    # As many rows as stay in the cache while they go through all trees.
    block = max(16, CACHED_FLOATS // (rows.shape[1] + 2 * values.shape[1]))
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
            # All rows go one level at a time: the memory of the next row is fetched while this one waits for its own.
            while count and feature[root] >= 0:
                kept = 0
                for a in range(count):
                    i = active[a]
                    at = node[i]
                    value = rows[i, feature[at]]
                    met = i if value != value else met
                    at = child[at] + np.int64(value > threshold[at])
                    node[i] = at
                    active[kept] = i
                    kept += feature[at] >= 0
                count = kept
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


@compiled
def add_leaves(
    rows: np.ndarray, roots: np.ndarray, feature: np.ndarray, threshold: np.ndarray, child: np.ndarray,
    values: np.ndarray, missing_left: np.ndarray, scores: np.ndarray, label: int = 0,
) -> None:  # fmt: skip
    """Compute :func:`add_scores` on arrays in one thread; rows (B, F) and scores (B, C) float32.

    Leaves of the first tree with one step add to the score of ``label``.
    """
    labels = scores.shape[1]
    # As many rows as stay in the cache while they go through all trees.
    block = max(16, CACHED_FLOATS // (rows.shape[1] + 2 * labels))
    for first in range(0, len(rows), block):
        for k in range(len(roots)):
            for i in range(first, min(first + block, len(rows))):
                at = roots[k]
                while feature[at] >= 0:
                    value = rows[i, feature[at]]
                    left = missing_left[at] if value != value else value <= threshold[at]
                    at = child[at] + (0 if left else 1)
                leaf = child[at]
                if values.shape[1] == labels:
                    for c in range(labels):
                        scores[i, c] += values[leaf, c]
                else:
                    scores[i, (label + k) % labels] += values[leaf, 0]
