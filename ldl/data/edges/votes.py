"""The votes of annotators at every pixel, and what is learned of them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ldl.edges.benchmark.thinning import widen

Target = Literal["votes", "consensus", "blended", "sampled"]

CONSENSUS = 0.5
"""Share of the annotators from which on a pixel counts as an edge for certain."""


def vote_share(boundaries: np.ndarray, tolerance: float) -> np.ndarray:
    """Share of the annotators that drew an edge at each pixel, (H, W) float32 in 0..1, from ``boundaries`` (A, H, W).

    An annotator counts for a pixel up to ``tolerance`` pixels from the line that was drawn.
    """
    return np.stack([widen(drawn, tolerance) for drawn in boundaries]).mean(0, dtype=np.float32)


def learned(
    share: np.ndarray, target: Target, negatives: float | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The target (H, W) float32 that is learned in place of the votes ``share``, and from which pixels, (H, W) bool.

    ``negatives`` is how many pixels without votes there are for each one with; None takes all of them.
    """
    empty, certain = share == 0, share >= CONSENSUS
    keep = certain if target == "consensus" else ~empty
    if negatives is None:
        keep = keep | empty
    else:
        # Where nothing is drawn, some pixels without votes are learned from all the same.
        wanted = negatives * max(int(keep.sum()), share.size // 100)
        keep = keep | (empty & (rng.random(share.shape) < wanted / max(1, int(empty.sum()))))
    if target == "blended":
        # The mean of two losses: pixels that the consensus leaves out have half the weight.
        keep &= certain | empty | (rng.random(share.shape) < 0.5)
        share = np.where(certain, (share + 1) / 2, share)
    elif target == "consensus":
        share = certain
    return share.astype(np.float32), keep
