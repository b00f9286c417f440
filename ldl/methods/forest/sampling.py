"""Bootstrap samples and random states of trees, which depend only on the seed and the number of the tree."""

from __future__ import annotations

import numpy as np

from ldl.errors import LDLError
from ldl.methods.numba_kernels import compiled, next_share

MOST_PERMUTED_ROWS = 1 << 20
"""Rows from which a sample without replacement is drawn row by row, as a permutation would take 8 bytes per row."""


MOST_DRAWS = 255
"""Largest number of draws of one row, as compiled code packs it with others."""


def bootstrap(
    rows: int, sampling: float, replace: bool, seed: int, tree: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the sample of one tree: max(1, round(sampling * rows)) draws, or with weights as many as their sum counts.

    With weights, a row is drawn with a probability in proportion to its weight. Without replacement it is then drawn as
    often as its expected number of draws, rounded up or down at random.

    Args:
        rows: Number of training rows N.
        sampling: Number of draws as a share of N.
        replace: Whether to draw with replacement.
        seed: Seed of the forest.
        tree: Number of the tree.
        weight: (N,) positive weights of the rows; None weighs all equally.

    Returns:
        The distinct rows of the sample, rising, int32, and how often each was drawn, int32.

    Raises:
        LDLError: A row would be drawn more than about 127 times.
    """
    random, draws = np.random.default_rng([seed, tree]), draws_of(rows, sampling, weight)
    if weight is None and not replace:
        drawn = subset(rows, sampling, seed, tree)
        return drawn, np.ones(len(drawn), np.int32)
    if weight is None:
        counts = np.bincount(random.integers(rows, size=draws))
    else:
        ends = np.cumsum(weight, dtype=np.float64)
        # Sorted independent places, or equally spaced ones behind a random start (systematic sampling).
        heaviest = int(weight.argmax())
        if sampling * weight[heaviest] > MOST_DRAWS / 2:
            raise LDLError(
                f"training row {heaviest} has the weight {weight[heaviest]:.6g} and would be drawn "
                f"{sampling * weight[heaviest]:.6g} times; divide the weights by their mean, or take data.weighting "
                "dirichlet, which limits them"
            )
        positions = np.sort(random.random(draws)) if replace else (np.arange(draws) + random.random()) / draws
        counts = np.bincount(np.searchsorted(ends, positions * ends[-1], "right").clip(max=rows - 1))
    drawn = np.flatnonzero(counts).astype(np.int32)
    return drawn, counts[drawn].astype(np.int32)


def draws_of(rows: int, sampling: float, weight: np.ndarray | None) -> int:
    """Return the number of draws of a :func:`bootstrap` sample."""
    return max(1, round(sampling * (rows if weight is None else float(weight.sum()))))


def subset(rows: int, sampling: float, seed: int, tree: int) -> np.ndarray:
    """Draw max(1, round(sampling * rows)) rows for one tree without replacement: rising, int32."""
    draws = max(1, round(sampling * rows))
    if draws == rows:
        return np.arange(rows, dtype=np.int32)
    if rows < MOST_PERMUTED_ROWS:
        is_drawn = np.zeros(rows, np.bool_)
        is_drawn[np.random.default_rng([seed, tree]).choice(rows, draws, replace=False)] = True
        return np.flatnonzero(is_drawn).astype(np.int32)
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
