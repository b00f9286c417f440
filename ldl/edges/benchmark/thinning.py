"""Thinning of binary maps to lines one pixel wide, and widening of such lines."""

from __future__ import annotations

import cv2
import numpy as np

from ldl.methods.forest.compiled import compiled


def _removable() -> np.ndarray:
    """Whether a pixel goes in the first and in the second half of a pass, (2, 256) bool, by its neighbourhood.

    Bit k of a neighbourhood is neighbour k + 1, counted from the east against the clock. Guo & Hall, "Parallel
    thinning with two-subiteration algorithms", CACM 1989, algorithm A1, in the form of Lam, Lee & Suen (PAMI 1992).
    """
    table = np.zeros((2, 256), dtype=np.bool_)
    for code in range(256):
        # x[1] is the east, x[9] the east again.
        x = [False, *(bool(code >> bit & 1) for bit in range(8)), bool(code & 1)]
        crossings = sum(not x[2 * i - 1] and (x[2 * i] or x[2 * i + 1]) for i in range(1, 5))
        first = sum(x[2 * i - 1] or x[2 * i] for i in range(1, 5))
        second = sum(x[2 * i] or x[2 * i + 1] for i in range(1, 5))
        if crossings == 1 and 2 <= min(first, second) <= 3:
            table[0, code] = not ((x[2] or x[3] or not x[8]) and x[1])
            table[1, code] = not ((x[6] or x[7] or not x[4]) and x[5])
    return table


_REMOVABLE = _removable()


@compiled
def thin_listed(mask: np.ndarray, width: int, pixels: np.ndarray, count: int) -> int:
    """Thin ``mask`` in place until nothing changes, and say how many pixels stay.

    It is a flat bool map of lines of ``width`` pixels, whose outermost pixels are False. The numbers of its True pixels
    are the first ``count`` of ``pixels``; those that stay are put there in the same order.
    """
    around = np.array([1, 1 - width, -width, -width - 1, -1, width - 1, width, width + 1])
    removed = np.empty(count, np.bool_)
    changed = True
    while changed:
        changed = False
        for half in range(2):
            for n in range(count):
                code = 0
                for bit in range(8):
                    code |= mask[pixels[n] + around[bit]] << bit
                removed[n] = _REMOVABLE[half, code]
            kept = 0
            for n in range(count):
                if removed[n]:
                    mask[pixels[n]] = False
                    changed = True
                else:
                    pixels[kept] = pixels[n]
                    kept += 1
            count = kept
    return count


def thin(mask: np.ndarray) -> np.ndarray:
    """Thin a binary map, (H, W) bool, until nothing changes; what lies outside the map counts as empty."""
    padded = np.ascontiguousarray(np.pad(np.asarray(mask, dtype=np.bool_), 1))  # or ravel is a copy
    pixels = np.flatnonzero(padded)
    thin_listed(padded.ravel(), padded.shape[1], pixels, len(pixels))
    return padded[1:-1, 1:-1].copy()


def widen(mask: np.ndarray, reach: float) -> np.ndarray:
    """The pixels up to ``reach`` pixels from a True one of a binary map, (H, W) bool."""
    away = int(reach)
    y, x = np.mgrid[-away : away + 1, -away : away + 1]
    disc = (y * y + x * x <= reach**2).astype(np.uint8)
    return cv2.dilate(np.asarray(mask, dtype=np.uint8), disc).astype(np.bool_)
