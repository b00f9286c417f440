"""Random numbers of a tree: they depend on the seed and the tree's number alone, not on threads or processes."""

from __future__ import annotations

import numpy as np

from ldl.methods.forest.compiled import compiled, inlined

MANY = 1 << 20
"""Rows from which a sample without replacement is picked row by row: a permutation would take 8 bytes of each."""
CHUNK = 1 << 20
"""Draws with replacement that are made at a time."""


def bootstrap(rows: int, sampling: float, replace: bool, seed: int, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """The sample of one tree: max(1, round(sampling * rows)) draws.

    Returns:
        The distinct rows drawn, rising, int32, and how often each was drawn, int32.
    """
    if not replace:
        drawn = subset(rows, sampling, seed, tree)
        return drawn, np.ones(len(drawn), np.int32)
    random, draws = np.random.default_rng([seed, tree]), _draws(rows, sampling)
    counts = np.zeros(rows, np.int32)
    for first in range(0, draws, CHUNK):
        _count(random.integers(rows, size=min(CHUNK, draws - first)), counts)
    drawn = np.flatnonzero(counts).astype(np.int32)
    return drawn, counts[drawn]


def subset(rows: int, sampling: float, seed: int, tree: int) -> np.ndarray:
    """The sample of one tree without replacement, max(1, round(sampling * rows)) rows: rising, int32."""
    draws = _draws(rows, sampling)
    if draws == rows:
        return np.arange(rows, dtype=np.int32)
    if rows < MANY:
        random = np.random.default_rng([seed, tree])
        return np.sort(random.choice(rows, draws, replace=False)).astype(np.int32)
    picked = np.empty(draws, np.int32)
    _pick(rows, _state(seed, tree, 4), picked)
    return picked


def _draws(rows: int, sampling: float) -> int:
    return max(1, round(sampling * rows))


@compiled
def _count(drawn: np.ndarray, counts: np.ndarray) -> None:
    for row in drawn:
        counts[row] += 1


def stream(seed: int, tree: int) -> np.ndarray:
    """State of the generator that the growing tree draws from, (1,) uint64; another stream than the bootstrap's."""
    return _state(seed, tree, 1)


def _state(seed: int, tree: int, purpose: int) -> np.ndarray:
    return np.random.default_rng([seed, tree, purpose]).integers(2**64, size=1, dtype=np.uint64)


@inlined
def next_bits(state: np.ndarray) -> int:
    """64 random bits; steps ``state`` on (splitmix64, Steele, Lea & Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def substream(state: np.ndarray, number: int) -> int:
    """What a stream of its own begins with, for each number; ``state`` stays."""
    return state[0] ^ (np.uint64(number + 1) * np.uint64(0xD1342543DE82EF95))


@inlined
def next_share(state: np.ndarray) -> float:
    """A number in [0, 1)."""
    return np.float64(next_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def draw_next(order: np.ndarray, k: int, state: np.ndarray) -> int:
    """Entry ``k`` of a permutation that is drawn as it is needed: one of those from ``k`` on."""
    other = k + int(next_bits(state) % np.uint64(len(order) - k))
    order[k], order[other] = order[other], order[k]
    return order[k]


@compiled
def _pick(rows: int, state: np.ndarray, picked: np.ndarray) -> None:
    """Fill in a simple random sample of the rows, in order (selection sampling; Fan, Muller & Rezucha 1962)."""
    taken = 0
    for row in range(rows):
        if next_share(state) * (rows - row) < len(picked) - taken:
            picked[taken] = row
            taken += 1
