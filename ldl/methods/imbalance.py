"""Subsets of rows with a simulated imbalance of their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from ldl.errors import LDLError


def bell_subset(values: np.ndarray, removed: float, seed: int | Sequence[int] = 0) -> np.ndarray:
    """Remove a share of the rows at random so that the values of the others are distributed like a Gaussian.

    At most M exp(-y^2 / 2 w^2) rows stay for every value y, with the number M of rows of the most common
    value and the width w that leaves the wanted number. This simulates natural imbalance, as in the head pose
    experiment of Huang, Loy & Tang 2016, who do not report the width of their Gaussian.

    Args:
        values: (n,) with many equal values, such as the angles of a grid.
        removed: Removed share, in [0, 1).
        seed: Seed of the draw.

    Returns:
        Rising row numbers, round((1 - removed) n) of them.

    Raises:
        LDLError: ``removed`` is more than the rows of all values but those nearest to 0, which all stay.
    """
    labels, member, counts = np.unique(values, return_inverse=True, return_counts=True)
    squared = labels**2
    squared -= squared.min()
    kept = round((1 - removed) * len(member))
    if kept == len(member):
        return np.arange(kept)
    if kept < (least := counts[squared == 0].sum()):
        most = 1 - least / len(member)
        raise LDLError(f"removed {removed:g} leaves no bell: at most {most:.3f}, all values but 0, can go")

    def quotas(log_width: float) -> np.ndarray:
        return np.minimum(counts, counts.max() * np.exp(-squared / (2 * np.exp(2 * log_width))))

    narrow, wide = 0.5 * np.log(squared[squared > 0].min() / 2000), 0.5 * np.log(squared.max() * 1e8)
    width = brentq(lambda log_width: quotas(log_width).sum() - kept, narrow, wide, xtol=1e-12)
    # Rounding the running sum keeps the total and never exceeds the rows of a value. Sums that differ by a whole number
    # up to the last bits must be rounded alike.
    sizes = np.diff(np.floor(np.cumsum(quotas(width)).round(9) + 0.5), prepend=0.0).astype(int)
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(member == label))[:size] for label, size in enumerate(sizes)]
    return np.sort(np.concatenate(chosen))
