"""Tables of known nature, made: distributions that are smooth in the features, stepwise, or independent of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

FEATURES, LABELS = 10, 4
NOISE = 0.4
"""Deviation of what is added to each label's score, row by row; no head can foresee it."""


def draw_table(nature: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (rows, 10), standard normal, and distributions (rows, 4) of a law that the seed draws, too.

    All are a softmax of scores of deviation 1, about as the nature says, with noise of deviation 0.4.

    Args:
        nature: One of :data:`NATURES`.
        rows: How many; all are independent, so that some of them may be kept to test on.
        seed: Of the law and the rows.
    """
    rng = np.random.default_rng([seed, *nature.encode()])
    features = rng.normal(size=(rows, FEATURES))
    scores = NATURES[nature](features, rng)
    return features, softmax(scores + rng.normal(0, NOISE, scores.shape), axis=1)


def smooth(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores (rows, 4): for each label a sum of 6 waves over 4 of the features, of about half a period each."""
    used = rng.choice(FEATURES, 4, replace=False)
    waves, phases = rng.normal(0, 0.5, (len(used), 6)), rng.uniform(0, 2 * np.pi, 6)
    return np.sin(features[:, used] @ waves + phases) @ rng.normal(0, np.sqrt(2 / 6), (6, LABELS))


def stepwise(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores (rows, 4): the sum of 3 random trees of depth 3 that split by features at values near their middle."""
    scores = np.zeros((len(features), LABELS))
    for _ in range(3):
        leaf = np.zeros(len(features), dtype=int)
        for level in range(3):
            feature, threshold = rng.integers(FEATURES, size=2**level), rng.normal(0, 0.5, 2**level)
            leaf = 2 * leaf + (features[np.arange(len(leaf)), feature[leaf]] > threshold[leaf])
        scores += rng.normal(0, np.sqrt(1 / 3), (8, LABELS))[leaf]
    return scores


def noise(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores (rows, 4) that do not look at the features: of a row their own, about a mean of the law."""
    return rng.normal(0, 0.5, LABELS) + rng.normal(0, 1, (len(features), LABELS))


NATURES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "smooth": smooth,
    "stepwise": stepwise,
    "noise": noise,
}
