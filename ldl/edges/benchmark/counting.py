"""How many edge pixels of a map correspond to those that annotators drew, at every threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.benchmark.assignment import Neighbours, Side, enter, leave, neighbours, new_scratch
from ldl.edges.benchmark.thinning import thin_listed
from ldl.errors import LDLError
from ldl.methods.forest.compiled import compiled

MAX_DIST = 0.0075
"""How far apart corresponding pixels may be, as a share of the image's diagonal (BSDS500's benchmark)."""


ROUNDING = 1e-6
"""How far beyond 0..1 sums of 32 bits may come to lie."""


class Counts(NamedTuple):
    """Pixels at each of T thresholds, (T,) int64 each; of several images, (N, T).

    Attributes:
        recalled: Annotators' edge pixels with a counterpart in the map, summed over annotators.
        drawn: Annotators' edge pixels.
        correct: Edge pixels of the map with a counterpart of at least one annotator.
        detected: Edge pixels of the map.
    """

    recalled: np.ndarray
    drawn: np.ndarray
    correct: np.ndarray
    detected: np.ndarray


def count(
    strength: np.ndarray,
    boundaries: np.ndarray,
    thresholds: np.ndarray,
    max_dist: float = MAX_DIST,
    thinning: bool = True,
) -> Counts:
    """Compare one edge map with the annotators of its image.

    Args:
        strength: (H, W) edge strength, in 0..1.
        boundaries: (A, H, W) bool, what each annotator drew.
        thresholds: (T,) rising; a pixel is an edge where its strength is at least the threshold.
        max_dist: See :data:`MAX_DIST`.
        thinning: Thin the map at every threshold.

    Raises:
        LDLError: sizes that differ, thresholds that do not rise, or strengths that are no numbers in 0..1.
    """
    if strength.shape != boundaries.shape[1:]:
        sizes = " and ".join("x".join(map(str, shape)) for shape in (strength.shape, boundaries.shape[1:]))
        raise LDLError(f"edge map and ground truth differ in size, {sizes} pixels; evaluate at the size of the image")
    if not np.isfinite(strength).all():
        raise LDLError("the edge map holds NaN or infinity; strengths must be numbers in 0..1")
    low, high = strength.min(initial=0), strength.max(initial=0)
    if low < -ROUNDING or high > 1 + ROUNDING:
        wrong = low if low < -ROUNDING else high
        raise LDLError(f"the edge map holds {wrong:g}; strengths must be in 0..1: divide those of 8 bits by 255")
    if not len(thresholds) or not (np.diff(thresholds) > 0).all():
        raise LDLError(f"thresholds must rise and be at least one, got {np.asarray(thresholds).tolist()[:8]}")
    if not 0 < max_dist < 0.1:
        raise LDLError(f"max_dist {max_dist!r} must be in 0..0.1, a share of the image's diagonal")
    height, width = strength.shape
    near = neighbours(max_dist * np.hypot(height, width), width)
    beside = (near.margin, near.margin)
    padded = np.pad(np.searchsorted(thresholds, strength, side="right").astype(np.int32), near.margin)
    drawn = np.pad(boundaries, ((0, 0), beside, beside))
    recalled, correct, detected = _count(
        padded.ravel(), drawn.reshape(len(drawn), -1), len(thresholds), padded.shape[1], near, thinning
    )
    return Counts(recalled, np.full(len(thresholds), boundaries.sum()), correct, detected)


@compiled
def _count(
    levels: np.ndarray, drawn: np.ndarray, thresholds: int, width: int, near: Neighbours, thinning: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``levels`` says at how many of the thresholds a pixel is an edge; all maps are flat, with their margin."""
    annotators, size = drawn.shape
    # Of each annotator: the map's side of the assignment, and the annotator's.
    present, mate = np.zeros((annotators, 2, size), np.bool_), np.full((annotators, 2, size), -1)
    price = np.zeros((annotators, 2, size), np.int64)
    present[:, 1] = drawn
    scratch = new_scratch(size)
    edge, pixels, before = np.zeros(size, np.bool_), np.empty(size, np.int64), np.empty(0, np.int64)
    recalled, correct, detected = np.zeros((3, thresholds), np.int64)
    for t in range(thresholds - 1, -1, -1):
        n = 0
        for p in range(size):
            if levels[p] > t:
                edge[p], pixels[n] = True, p
                n += 1
        if thinning:
            n = thin_listed(edge, width, pixels, n)
        for a in range(annotators):
            own = Side(present[a, 0], mate[a, 0], price[a, 0])
            other = Side(present[a, 1], mate[a, 1], price[a, 1])
            for p in before:
                if not edge[p]:
                    leave(p, own, other, near, scratch, False)
            for p in pixels[:n]:
                if not own.present[p]:
                    own.present[p] = True
                    enter(p, own, other, near, scratch, False)
            for p in pixels[:n]:
                recalled[t] += own.mate[p] >= 0
        before = pixels[:n].copy()
        detected[t] = n
        for p in before:
            edge[p] = False
            correct[t] += (mate[:, 0, p] >= 0).any()
    return recalled, correct, detected
