"""2-means from several starts: whether trees of better clusters predict better.

The grower is the package's own, compiled anew with another relabelling: from the usual start and from the axis of every
label, of which the tightest two clusters are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any

import numba
import numpy as np

from ldl.methods.forest import growing
from ldl.methods.forest.relabel import ROUNDS, two_means


@numba.njit(nogil=True)
def gain(centred: np.ndarray, weights: np.ndarray, rows: np.ndarray, lo: int, cluster: np.ndarray) -> float:
    """How much two clusters lower the sum of squares, of rows ``centred`` at their mean: |s|^2 (1 / n_1 + 1 / n_0)."""
    sums, ones, total = np.zeros(centred.shape[1]), 0, 0
    for i in range(len(cluster)):
        weight = weights[rows[lo + i]]
        total += weight
        ones += weight * cluster[i]
        for c in range(len(sums)):
            sums[c] += weight * cluster[i] * np.float64(centred[i, c])
    return (sums * sums).sum() * (1 / ones + 1 / (total - ones))


@numba.njit(nogil=True)
def from_axis(
    centred: np.ndarray, weights: np.ndarray, rows: np.ndarray, lo: int, label: int, cluster: np.ndarray
) -> int:
    """Lloyd's rounds from the two sides of the mean in one label; the draws of cluster 1, 0 where all are on one."""
    total, ones = 0, 0
    sums, cut = np.zeros(centred.shape[1]), 0.0
    sums[label] = 1.0
    cluster[:] = 0
    for _ in range(ROUNDS):
        moved, before = False, sums.copy()
        sums[:], ones, total = 0.0, 0, 0
        for i in range(len(cluster)):
            now = np.uint8((centred[i] * before).sum() > cut)
            moved |= now != cluster[i]
            cluster[i] = now
            weight = weights[rows[lo + i]]
            total += weight
            ones += weight * now
            for c in range(len(sums)):
                sums[c] += weight * now * np.float64(centred[i, c])
        if ones == 0 or ones == total:
            return 0
        if not moved:
            break
        cut = 0.5 * (sums * sums).sum() * (1 / ones - 1 / (total - ones))
    return ones


@numba.njit(nogil=True)
def best_means(
    codes: np.ndarray,
    samples: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    lo: int,
    hi: int,
    centred: np.ndarray,
    cluster: np.ndarray,
) -> int:
    """As ``two_means``, the best of one start more than there are labels."""
    best_ones = two_means(codes, samples, weights, rows, lo, hi, centred, cluster)
    count = hi - lo
    if count == 2:
        return best_ones
    best, tried = gain(centred[:count], weights, rows, lo, cluster[:count]), np.empty(count, np.uint8)
    for label in range(codes.shape[1]):
        ones = from_axis(centred[:count], weights, rows, lo, label, tried)
        if ones:
            found = gain(centred[:count], weights, rows, lo, tried)
            if found > best * (1 + 1e-6):
                best, best_ones = found, ones
                cluster[:count] = tried
    return best_ones


@cache
def grower() -> Any:
    """The package's grower with :func:`best_means`."""
    original: Any = growing.grow
    names = {**original.py_func.__globals__, "two_means": best_means}
    return numba.njit(FunctionType(original.py_func.__code__, names, "grow"), nogil=True)


@contextmanager
def several_starts() -> Iterator[None]:
    """Trees that are grown within cluster from several starts."""
    before = growing.grow
    growing.grow = grower()
    try:
        yield
    finally:
        growing.grow = before
