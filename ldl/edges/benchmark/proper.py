"""Proper scores, calibration and its error, of probabilities that are given by level.

A tally says of each level how many pixels have it, and how many of the votes there are for an edge. ``probability``,
(L,) float64, says what the levels stand for.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from ldl.edges.benchmark.maps import STEPS
from ldl.edges.benchmark.votes import Tally

BINS = 15
"""Bins of the calibration error."""


def stated(steps: int = STEPS) -> np.ndarray:
    """What levels say of themselves, (65536,): k / 65535; ``steps`` stands for 1 in the files.

    A file's 0 stands for all that rounds to 0, and is read as the middle of that, 1 / (4 steps); so is 1.
    """
    end = 0.25 / steps
    return np.clip(np.arange(STEPS + 1) / STEPS, end, 1 - end)


def isotonic(tally: Tally) -> np.ndarray:
    """The rising probabilities, (L,), under which the votes are likeliest; they have the least Brier score too.

    One vote for an edge is added at the lowest level that occurs and one against at the highest, so that no
    probability is 0 or 1. Levels between those that occur get what lies on the line between them; without any pixel
    all get 1/2.
    """
    pixels, votes = tally.pixels.copy(), tally.votes.copy()
    there = np.flatnonzero(pixels)
    if not len(there):
        return np.full(len(pixels), 0.5)
    votes[there[0]] += 1
    np.add.at(pixels, there[[0, -1]], 1)  # both, where they are the same
    fitted = isotonic_regression(votes[there] / pixels[there], weights=pixels[there]).x
    return np.interp(np.arange(len(pixels)), there, fitted)


def scores(tally: Tally, probability: np.ndarray, bins: int = BINS) -> dict[str, float]:
    """``nll`` in nats, ``brier``, ``ece`` and ``ece_mass``, each a mean over pixels and their annotators; NaN of none.

    See :func:`calibration_error`; ``ece`` has bins of equal width, ``ece_mass`` of equal mass.
    """
    pixels, votes = tally
    total = pixels.sum()
    if not total:
        return dict.fromkeys(("nll", "brier", "ece", "ece_mass"), float("nan"))
    # A vote y in {0, 1} has the squared error (p - y)^2 = p^2 - 2 p y + y.
    brier = (probability**2 * pixels - 2 * probability * votes + votes).sum() / total
    nll = -(xlogy(votes, probability) + xlogy(pixels - votes, 1 - probability)).sum() / total
    errors = [calibration_error(tally, probability, bins, mass) for mass in (False, True)]
    return dict(zip(("nll", "brier", "ece", "ece_mass"), map(float, (nll, brier, *errors))))


def base_rate(tally: Tally) -> float:
    """The share of votes for an edge; NaN of no pixels."""
    total = tally.pixels.sum()
    return float(tally.votes.sum() / total) if total else float("nan")


def calibration_error(tally: Tally, probability: np.ndarray, bins: int = BINS, mass: bool = False) -> float:
    """Expected calibration error: mean over pixels of |votes - probability|, both averaged in the pixel's bin.

    Naeini, Cooper & Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015.

    Args:
        tally: Pixels and votes by level.
        probability: What the levels stand for.
        bins: How many.
        mass: Let bins have the same number of pixels, not the same width. Equal probabilities stay together, in the bin
            of their middle pixel.
    """
    gap, _, pixels = reliability(tally, probability, bins, mass)
    return float((pixels * np.abs(gap)).sum() / pixels.sum())


def reliability(
    tally: Tally, probability: np.ndarray, bins: int = BINS, mass: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each bin that has pixels: share of votes less mean probability, mean probability, and pixels; (B,) each."""
    stands, group = np.unique(probability, return_inverse=True)
    pixels, votes = (np.bincount(group, column) for column in tally)
    where = (np.cumsum(pixels) - pixels / 2) / pixels.sum() if mass else stands
    place = np.minimum((bins * where).astype(int), bins - 1)
    pixels, votes, total = (np.bincount(place, column) for column in (pixels, votes, pixels * stands))
    there = pixels > 0
    pixels, votes, total = pixels[there], votes[there], total[there]
    return (votes - total) / pixels, total / pixels, pixels


def correlation(tally: Tally, squares: float, probability: np.ndarray) -> float:
    """Pearson's correlation of p (1 - p) with the disagreement of annotators, over pixels; NaN where one is constant.

    Args:
        tally: Pixels and the sum of disagreement by level.
        squares: Sum of squared disagreement.
        probability: What the levels stand for.
    """
    pixels, found = tally
    expected, total = probability * (1 - probability), pixels.sum()
    if not total or not np.ptp(expected[pixels > 0]):
        return float("nan")
    means = (expected * pixels).sum() / total, found.sum() / total
    spread = ((expected - means[0]) ** 2 * pixels).sum() * (squares - total * means[1] ** 2)
    return float(((expected - means[0]) * found).sum() / np.sqrt(spread)) if spread > 0 else float("nan")
