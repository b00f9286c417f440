"""What annotators vote for at every pixel, and how often at every level of a map of probabilities.

A map predicts three things that annotators decide. ``drawn``: an annotator draws the very pixel. ``near``: an annotator
draws within 2 pixels. ``any``: at least one of the image's annotators draws within 2 pixels. The answer of a pixel is a
share in 0..1, in which every annotator has the same weight.

Maps have 65,536 levels. How many pixels a level has, and how many votes, is all that likelihood, scores and calibration
depend on, so that images are added up and forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldl.edges.benchmark.maps import STEPS
from ldl.edges.benchmark.thinning import widen
from ldl.errors import LDLError

NEAR, BAND = 2.0, 5.0
"""Distances in pixels: what counts as near, and how far the band around what any annotator drew reaches."""

QUESTIONS = ("drawn", "near", "any")
REGIONS = ("all", "band")


class Panel(NamedTuple):
    """The answers of the annotators of one image of H x W pixels.

    Attributes:
        answers: (H, W) float64 in 0..1, of each of :data:`QUESTIONS`.
        disagreement: (H, W) float64, the unbiased estimate of p (1 - p) from the answers to ``near``; None of a single
            annotator, who cannot disagree.
        band: (H, W) bool, the pixels within :data:`BAND` of what any annotator drew.
    """

    answers: dict[str, np.ndarray]
    disagreement: np.ndarray | None
    band: np.ndarray

    def region(self, name: str) -> np.ndarray:
        """The pixels of one of :data:`REGIONS`, (H, W) bool."""
        return self.band if name == "band" else np.ones_like(self.band)


class Tally(NamedTuple):
    """Pixels and votes at each of L levels, of one image or of many.

    Attributes:
        pixels: (L,) float64.
        votes: (L,) float64, the sum of the answers of these pixels.
    """

    pixels: np.ndarray
    votes: np.ndarray

    def plus(self, other: Tally) -> Tally:
        """The tally of the images of both."""
        return Tally(self.pixels + other.pixels, self.votes + other.votes)


def within(boundaries: np.ndarray, reach: float) -> np.ndarray:
    """Whether each annotator drew at most ``reach`` pixels from a pixel; (A, H, W) bool, twice."""
    return np.stack([widen(drawn, reach) for drawn in boundaries])


def panel(boundaries: np.ndarray) -> Panel:
    """The answers of those who drew ``boundaries``, (A, H, W) bool."""
    count = len(boundaries)
    near = within(boundaries, NEAR)
    share = near.mean(0)
    disagreement = share * (1 - share) * count / (count - 1) if count > 1 else None
    answers = dict(zip(QUESTIONS, (boundaries.mean(0), share, near.any(0).astype(float))))
    return Panel(answers, disagreement, within(boundaries.any(0, keepdims=True), BAND)[0])


def levels(probability: np.ndarray) -> np.ndarray:
    """The level of each pixel, 0 to 65,535, of (H, W) in 0..1. Raises LDLError for other values, and NaN."""
    values = np.asarray(probability, np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise LDLError(f"the map has values from {values.min():g} to {values.max():g}; probabilities must be in 0..1")
    return np.round(STEPS * values).astype(np.int64)


def tally(level: np.ndarray, answer: np.ndarray, region: np.ndarray | None = None) -> Tally:
    """Count pixels and votes at every level.

    Args:
        level: (H, W) int, as of :func:`levels`.
        answer: (H, W) in 0..1, shares of annotators.
        region: (H, W) bool, the pixels that count; None for all.

    Raises:
        LDLError: sizes that differ.
    """
    if level.shape != answer.shape:
        sizes = " and ".join("x".join(map(str, shape)) for shape in (level.shape, answer.shape))
        raise LDLError(f"map and ground truth differ in size, {sizes} pixels; predict at the size of the image")
    chosen = slice(None) if region is None else region.ravel()
    level, answer = level.ravel()[chosen], answer.ravel()[chosen]
    counted = np.bincount(level, minlength=STEPS + 1).astype(np.float64)
    return Tally(counted, np.bincount(level, answer, minlength=STEPS + 1))
