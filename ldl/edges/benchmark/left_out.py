"""Annotators who predict each other: each is left out in turn, and the share of the others foretells the vote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from ldl.errors import LDLError


class Smoothing(NamedTuple):
    """How a handful of others becomes a probability.

    Attributes:
        sigma: Standard deviation of the Gaussian that blurs what each drew, in pixels: two annotators who mean the same
            line draw it side by side, rarely on the same pixels.
        prior: Further annotators of whom nothing but the base rate is known. Laplace's rule has two, who vote for and
            against; here pixels without any vote are the rule, and one in two would be far off.
        rate: The base rate, the share of votes for an edge.
    """

    sigma: float
    prior: float
    rate: float


def predictions(drawn: np.ndarray, smoothing: Smoothing) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What the others of an image foretell of each annotator, (H, W) float64 in 0..1, with that one's votes.

    Args:
        drawn: (A, H, W) bool.
        smoothing: How; its rate and blur keep 0..1.

    Raises:
        LDLError: a single annotator.
    """
    if len(drawn) < 2:
        raise LDLError("the image has a single annotator; there is nobody to predict")
    blurred = [gaussian_filter(one.astype(np.float64), smoothing.sigma) for one in drawn]
    total = np.sum(blurred, 0) + smoothing.prior * smoothing.rate
    for own, votes in zip(blurred, drawn):
        # Rounding may lead a hair beyond.
        yield np.clip((total - own) / (len(drawn) - 1 + smoothing.prior), 0, 1), votes
