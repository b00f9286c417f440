"""Segmentations whose features tell where their lines are, and trees on them."""

from __future__ import annotations

import numpy as np

from ldl.edges.structured.bins import BINS, Bins
from ldl.edges.structured.growing import PatchTree, Rules, grow
from ldl.methods.forest.draws import stream


def halves(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Segmentations by a line at a random place, and noisy bins, (40, N), the first of which tells the place."""
    random = np.random.default_rng(seed)
    place = random.integers(-8, 24, count)
    segments = np.broadcast_to(np.arange(16)[None, None] > place[:, None, None], (count, 16, 16))
    codes = random.integers(0, 256, (40, count), dtype=np.uint8)
    codes[0] = (place + 8) * 7 + random.integers(0, 12, count)
    return codes, segments.reshape(count, 256).astype(np.uint8)


def unit_bins() -> Bins:
    """One table whose bins are the whole numbers."""
    edges = np.arange(BINS - 1, dtype=np.float32)[None]
    return Bins(edges, np.arange(BINS, dtype=np.float32)[None], edges[:, 0], edges[:, 0], np.zeros((1, 1), np.uint8))


def grown(codes: np.ndarray, segments: np.ndarray, rules: Rules, seed: int = 0) -> PatchTree:
    return grow(codes, np.zeros(len(codes), np.int32), unit_bins(), segments, rules, stream(seed, 0))


def pair_codes(segments: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return (segments[:, pairs[:, 0]] == segments[:, pairs[:, 1]]).astype(np.float64)
