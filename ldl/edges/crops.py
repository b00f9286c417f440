"""Votes of annotators at every pixel, and random crops of images with their votes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import cv2
import numpy as np

from ldl.edges.benchmark.thinning import widen

Target = Literal["votes", "consensus", "blended", "sampled"]
CONSENSUS = 0.5
"""Minimum share of the annotators for a certain edge."""


def vote_share(boundaries: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the share of annotators that drew an edge at each pixel, (H, W) float32 in 0..1, from (A, H, W).

    An annotator counts at pixels up to ``tolerance`` pixels from the drawn line.
    """
    return np.stack([widen(drawn, tolerance) for drawn in boundaries]).mean(0, dtype=np.float32)


def learned(
    share: np.ndarray, target: Target, negatives: float | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the training target (H, W) float32 for the votes ``share``, and the pixels to learn from, (H, W) bool.

    ``negatives`` is the number of pixels without votes for each pixel with votes; None keeps all of them.
    """
    empty, certain = share == 0, share >= CONSENSUS
    keep = certain if target == "consensus" else ~empty
    if negatives is None:
        keep = keep | empty
    else:
        # An image without any drawing still contributes some pixels without votes.
        wanted = negatives * max(int(keep.sum()), share.size // 100)
        keep = keep | (empty & (rng.random(share.shape) < wanted / max(1, int(empty.sum()))))
    if target == "blended":
        # The mean of two losses: pixels that the consensus leaves out have half the weight.
        keep &= certain | empty | (rng.random(share.shape) < 0.5)
        share = np.where(certain, (share + 1) / 2, share)
    elif target == "consensus":
        share = certain
    return share.astype(np.float32), keep


class EdgeCrops(NamedTuple):
    """How training images are cropped; see :class:`ldl.edges.bsds500.BSDS500`."""

    side: int
    target: Target
    flips: bool
    turns: bool
    negatives: float | None
    rotations: int = 1
    sizes: Sequence[float] = (1.0, 1.0)

    @property
    def moves(self) -> bool:
        """Whether images are rotated or resized, so that pixels do not fall on pixels."""
        return self.rotations > 1 or tuple(self.sizes) != (1.0, 1.0)

    @property
    def wants_lines(self) -> bool:
        """Whether crops need the drawing of each annotator, not only the votes."""
        return self.moves or self.target == "sampled"

    def take(
        self, image: np.ndarray, share: np.ndarray, lines: np.ndarray | None, reach: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a random crop: image (side, side, 3) uint8, target (side, side) float32, pixels to learn from.

        Args:
            image: (H, W, 3) uint8.
            share: (H, W) the votes.
            lines: (A, H, W) the drawing of each annotator; needed with :attr:`wants_lines`.
            reach: Maximum distance from a line at which its annotator counts, in pixels.
            rng: Random generator.
        """
        if lines is not None and self.target == "sampled":
            lines = lines[rng.integers(len(lines))][None]
            share = share if self.moves else vote_share(lines, reach)
        if lines is not None and self.moves:
            picture, share = self._moved(image, lines, reach, rng)
        else:
            picture, share = self._window(image, share, rng)
        return picture, *learned(share, self.target, self.negatives, rng)

    def _window(self, image: np.ndarray, share: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        y, x = (int(rng.integers(length - self.side + 1)) for length in share.shape)
        image, share = (whole[y : y + self.side, x : x + self.side] for whole in (image, share))
        if self.flips and rng.random() < 0.5:
            image, share = image[:, ::-1], share[:, ::-1]
        quarters = int(rng.integers(4)) if self.turns else 0
        return np.rot90(image, quarters), np.rot90(share, quarters)

    def _moved(
        self, image: np.ndarray, lines: np.ndarray, reach: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a rotated and resized window inside the image.

        Lines are not resampled, which would thicken or break them; the distances to them are.
        """
        angle = 2 * math.pi * rng.integers(self.rotations) / self.rotations
        angle += math.pi / 2 * rng.integers(4) if self.turns else 0
        cos, sin = (round(function(angle), 12) for function in (math.cos, math.sin))
        mirror = -1 if self.flips and rng.random() < 0.5 else 1
        low, high = self.sizes
        across = self.side * (abs(cos) + abs(sin))
        # Limit shrinking so that the window fits into the image.
        size = max(low * (high / low) ** rng.random(), across / min(image.shape[:2]))
        centre = np.array([_centre(length, across / size, rng) for length in image.shape[1::-1]])
        # Cut the part that the window and the lines near it need.
        margin = (across / 2 + reach) / size + 2
        left, top = (max(0, math.floor(coordinate - margin)) for coordinate in centre)
        right, bottom = (math.ceil(coordinate + margin) + 1 for coordinate in centre)
        turn = np.array([[cos * mirror, -sin], [sin * mirror, cos]]) / size
        start = centre - (left, top) - turn @ np.full(2, (self.side - 1) / 2)
        matrix = np.column_stack([turn, start])

        def warp(pixels: np.ndarray) -> np.ndarray:
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            return cv2.warpAffine(pixels, matrix, (self.side,) * 2, flags=flags, borderMode=cv2.BORDER_REPLICATE)

        votes = np.zeros((self.side, self.side), np.float32)
        for drawn in lines[:, top:bottom, left:right]:
            if drawn.any():
                away = cv2.distanceTransform((~drawn).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
                # A line is at least as wide as its pixels; 1e-3 covers rounding.
                votes += size * warp(away) <= max(reach, 0.5) + 1e-3
        return warp(np.ascontiguousarray(image[top:bottom, left:right])), votes / len(lines)


def _centre(length: int, across: float, rng: np.random.Generator) -> float:
    """Return a random centre along ``length`` pixels of a window that covers ``across`` pixels."""
    return (across - 1) / 2 + int(rng.integers(max(0, math.floor(length - across + 1e-6)) + 1))
