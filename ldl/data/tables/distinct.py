"""Offsets that keep different numbers of a column different in float32, where rounding would merge them.

Rounding merges neighbours if a column's numbers lie close together in comparison with their level, such as times in
seconds since 1970, or if one far number, such as a code for a gap, stretches the scale. :func:`learn` finds these
neighbours among training rows and moves them apart by a few steps of float32, in their order. Numbers between two
training rows are moved by interpolation. All other numbers keep their bits.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

NEIGHBOUR_STEPS = 4
"""Steps of float32 between neighbours that rounding would merge, so that thresholds fit between them."""
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def merged(numbers: np.ndarray, scaled: np.ndarray, clip: float | None) -> np.ndarray:
    """Return which neighbours differ, and are equal once they are scaled and rounded, (N - 1, F) bool.

    Args:
        numbers: (N, F), each column sorted, with NaN at the end.
        scaled: The scaled numbers, float64. Those beyond float32 do not count.
        clip: Largest magnitude of a scaled number, whose equals stay equal; None without one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = scaled.astype(np.float32)
        equal = (np.diff(numbers, axis=0) > 0) & (np.diff(rounded, axis=0) <= 0)
    outside = np.abs(scaled) >= (LARGEST_FLOAT32 if clip is None else clip)
    return equal & ~(outside[1:] & outside[:-1])


def learn(numbers: np.ndarray, scaled: np.ndarray, equal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return knots (K,) and offsets (K,) of one column.

    Args:
        numbers: (N,), sorted, without NaN.
        scaled: The scaled numbers, float64, which do not fall.
        equal: (N - 1,) which neighbours rounding would merge.
    """
    moved = scaled.astype(np.float32).astype(np.float64)
    changed = np.zeros(len(numbers), bool)
    for first in np.flatnonzero(equal) + 1:
        row = first
        while row < len(numbers):
            step = max(float(np.spacing(np.float32(abs(moved[row - 1])))), float(np.finfo(np.float32).tiny))
            repeated = numbers[row] == numbers[row - 1]
            least = moved[row - 1] + (0 if repeated else NEIGHBOUR_STEPS * step)
            if moved[row] >= least and (changed[row] or not equal[row - 1]):
                break
            moved[row], changed[row] = np.float32(max(least, moved[row])), True
            row += 1
    # Beside the moved numbers, the offset is zero again.
    kept = changed.copy()
    kept[:-1] |= changed[1:]
    kept[1:] |= changed[:-1]
    knots, first_of = np.unique(numbers[kept], return_index=True)
    return knots, np.where(changed, moved - scaled, 0.0)[kept][first_of]


def stack(pairs: dict[int, tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the learned arrays of some columns: their numbers (P,), their knots (K, P), and the offsets there (K, P).

    A column with fewer knots than others repeats its last one.

    Args:
        pairs: Knots and offsets of each column by its number, from :func:`learn`.
    """
    size = max(len(knots) for knots, _ in pairs.values())
    knots, offsets = (
        np.stack([np.pad(pair[side], (0, size - len(pair[side])), "edge") for pair in pairs.values()], 1)
        for side in (0, 1)
    )
    return {"columns": np.array([*pairs], np.float64), "knots": knots, "offsets": offsets}


def offset(numbers: np.ndarray, learned: dict[str, np.ndarray]) -> np.ndarray:
    """Return what is added to the scaled numbers (N, F)."""
    added = np.zeros(numbers.shape)
    for index, column in enumerate(learned["columns"].astype(np.int64)):
        present = ~np.isnan(numbers[:, column])
        pair = learned["knots"][:, index], learned["offsets"][:, index]
        added[present, column] = np.interp(numbers[present, column], *pair)
    return added


def offset_of(numbers: Tensor, counted: Tensor, learned: dict[str, Tensor]) -> Tensor:
    """Return the same in torch.

    Args:
        numbers: (N, P), the columns with offsets.
        counted: (N, P), how many knots of its column are at most the number.
        learned: The learned arrays.
    """
    knots, offsets = learned["knots"], learned["offsets"]
    low, high = (counted - 1).clamp_min(0), counted.clamp_max(len(knots) - 1)
    start, gap = knots.gather(0, low), knots.gather(0, high) - knots.gather(0, low)
    share = torch.where(gap > 0, (numbers - start) / torch.where(gap > 0, gap, 1.0), 0.0).clamp(0, 1)
    return offsets.gather(0, low) + share * (offsets.gather(0, high) - offsets.gather(0, low))
