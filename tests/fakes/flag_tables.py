"""A table of many flags and two numbers, for which a network embeds the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_flags(folder: Path, flags: int) -> Path:
    """Write 90 rows of flags, 0 or 1, and 2 numbers, with distributions that depend on both, and return the path."""
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.integers(0, 2, (90, flags)), rng.normal(size=(90, 2))], 1)
    score = np.stack([features[:, 0], np.sin(2 * features[:, flags]), features[:, flags + 1]], 1)
    np.savez(folder / "t.npz", features=features, labels=np.exp(score) / np.exp(score).sum(1, keepdims=True))
    return folder / "t.npz"
