"""Bootstrap samples and random states of trees, which depend only on the seed and the number of the tree."""

from __future__ import annotations

import numpy as np

from ldl.methods.numba_kernels import compiled, next_share

MANY = 1 << 20
"""Rows from which a sample without replacement is drawn row by row, as a permutation would take 8 bytes per row."""


def bootstrap(rows: int, sampling: float, replace: bool, seed: int, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the sample of one tree: max(1, round(sampling * rows)) draws.

    Returns:
        The distinct rows of the sample, rising, int32, and how often each was drawn, int32.
    """
    if not replace:
        drawn = subset(rows, sampling, seed, tree)
        return drawn, np.ones(len(drawn), np.int32)
    random, draws = np.random.default_rng([seed, tree]), max(1, round(sampling * rows))
    counts = np.bincount(random.integers(rows, size=draws))
    drawn = np.flatnonzero(counts).astype(np.int32)
    return drawn, counts[drawn].astype(np.int32)


def subset(rows: int, sampling: float, seed: int, tree: int) -> np.ndarray:
    """Draw max(1, round(sampling * rows)) rows for one tree without replacement: rising, int32."""
    draws = max(1, round(sampling * rows))
    if draws == rows:
        return np.arange(rows, dtype=np.int32)
    if rows < MANY:
        random = np.random.default_rng([seed, tree])
        return np.sort(random.choice(rows, draws, replace=False)).astype(np.int32)
    picked = np.empty(draws, np.int32)
    _pick(rows, _state(seed, tree, 4), picked)
    return picked


def stream(seed: int, tree: int) -> np.ndarray:
    """Return the state, (1,) uint64, of the generator for growing a tree; it is independent of the bootstrap's."""
    return _state(seed, tree, 1)


def _state(seed: int, tree: int, purpose: int) -> np.ndarray:
    return np.random.default_rng([seed, tree, purpose]).integers(2**64, size=1, dtype=np.uint64)


@compiled
def _pick(rows: int, state: np.ndarray, picked: np.ndarray) -> None:
    """Draw a simple random sample of the rows in order (selection sampling; Fan, Muller & Rezucha 1962)."""
    taken = 0
    for row in range(rows):
        if next_share(state) * (rows - row) < len(picked) - taken:
            picked[taken] = row
            taken += 1
