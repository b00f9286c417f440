"""Random numbers of a tree: they depend on the seed and the tree's number alone, not on threads or processes."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import inlined


def bootstrap(rows: int, sampling: float, replace: bool, seed: int, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """The sample of one tree: max(1, round(sampling * rows)) draws.

    Returns:
        The distinct rows drawn, rising, int32, and how often each was drawn, int32.
    """
    random = np.random.default_rng([seed, tree])
    draws = max(1, round(sampling * rows))
    if not replace:
        drawn = np.arange(rows) if draws == rows else np.sort(random.choice(rows, draws, replace=False))
        return drawn.astype(np.int32), np.ones(draws, np.int32)
    counts = np.bincount(random.integers(rows, size=draws), minlength=rows)
    drawn = np.flatnonzero(counts)
    return drawn.astype(np.int32), counts[drawn].astype(np.int32)


def stream(seed: int, tree: int) -> np.ndarray:
    """State of the generator that the growing tree draws from, (1,) uint64; another stream than the bootstrap's."""
    return np.random.default_rng([seed, tree, 1]).integers(2**64, size=1, dtype=np.uint64)


@inlined
def next_bits(state: np.ndarray) -> int:
    """64 random bits; steps ``state`` on (splitmix64, Steele, Lea & Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def next_share(state: np.ndarray) -> float:
    """A number in [0, 1)."""
    return np.float64(next_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
