"""Relabelling of a node's rows: a distribution a row becomes one of two clusters (Chen et al. 2018, section 3.1)."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import inlined, inlined_fast

ROUNDS = 20
"""At most so many rounds of 2-means; few nodes need more than five."""
NEAR = 1e-5
"""Distances whose relative difference is smaller count as equal, so that rounding decides nothing."""


@inlined_fast
def _dot(a: np.ndarray, i: int, b: np.ndarray) -> float:
    total = np.float32(0)
    for c in range(b.shape[0]):
        total += a[i, c] * b[c]
    return total


@inlined_fast
def _norm(a: np.ndarray, i: int) -> float:
    total = np.float32(0)
    for c in range(a.shape[1]):
        total += a[i, c] * a[i, c]
    return total


@inlined
def all_equal(codes: np.ndarray, samples: np.ndarray, rows: np.ndarray, lo: int, hi: int) -> bool:
    """Whether rows lo..hi of a node have the same code, (N, C), in every entry."""
    first = samples[rows[lo]]
    for i in range(lo + 1, hi):
        sample = samples[rows[i]]
        for c in range(codes.shape[1]):
            if codes[sample, c] != codes[first, c]:
                return False
    return True


@inlined
def two_means(
    codes: np.ndarray,
    samples: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    lo: int,
    hi: int,
    centred: np.ndarray,
    cluster: np.ndarray,
) -> int:
    """2-means of the codes of rows lo..hi, which must not all be equal.

    The rule, all of it deterministic: the first centres are the row farthest from the node's mean (the first of
    them by row number) and its mirror image. A row belongs to cluster 1 where that centre is nearer, by more than
    ``NEAR`` of the squared distance between the centres; then the centres become the clusters' means, until
    no row moves, or ``ROUNDS`` times.

    With the node's mean at 0 the two means lie on one line through 0, on opposite sides. So one vector s, the
    sum over cluster 1, says it all, and a round costs one scalar product a row.

    Args:
        codes: (N, C) float32, what is clustered.
        samples: Row of ``codes`` of each row of the tree.
        weights: How often the bootstrap drew each row of the tree.
        rows: Rows of the tree, by node.
        lo: First of the node in ``rows``.
        hi: One past the last.
        centred: (at least hi - lo, C) float32, scratch.
        cluster: (at least hi - lo) uint8, gets 0 or 1 for each row of the node.

    Returns:
        How many draws are in cluster 1; neither cluster is empty.
    """
    count, width = hi - lo, codes.shape[1]
    if count == 2:
        cluster[0], cluster[1] = 0, 1
        return weights[rows[lo + 1]]
    sums = np.zeros(width)
    total = 0
    for i in range(lo, hi):
        sample, weight = samples[rows[i]], weights[rows[i]]
        total += weight
        for c in range(width):
            sums[c] += weight * np.float64(codes[sample, c])
    for c in range(width):
        sums[c] /= total
    farthest = np.float32(0)
    for i in range(count):
        sample = samples[rows[lo + i]]
        for c in range(width):
            centred[i, c] = np.float32(codes[sample, c] - sums[c])
        farthest = max(farthest, _norm(centred, i))
    direction = np.zeros(width, np.float32)
    for i in range(count):
        if _norm(centred, i) >= farthest * (1 - NEAR):
            direction[:] = centred[i]
            break

    sums[:] = 0
    ones = 0
    cluster[:count] = 0
    cut = 2 * NEAR * farthest
    for _ in range(ROUNDS):
        moved = False
        for i in range(count):
            now = np.uint8(_dot(centred, i, direction) > cut)
            if now != cluster[i]:
                moved = True
                cluster[i] = now
                weight = weights[rows[lo + i]]
                sign = weight if now else -weight
                ones += sign
                for c in range(width):
                    sums[c] += sign * np.float64(centred[i, c])
        if not moved:
            break
        squared = 0.0
        for c in range(width):
            direction[c] = sums[c]
            squared += sums[c] * sums[c]
        one, zero = 1 / ones, 1 / (total - ones)
        cut = squared * (0.5 * (one - zero) + NEAR * (one + zero))
    return ones
