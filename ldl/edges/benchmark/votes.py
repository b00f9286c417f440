"""Votes of annotators against maps of probabilities: likelihood, Brier score, calibration and disagreement.

A map predicts three decisions of annotators. ``drawn``: an annotator draws the very pixel. ``near``: an annotator draws
within 2 pixels. ``any``: at least one of the image's annotators draws within 2 pixels. The answer at a pixel is a share
in 0..1, in which every annotator has the same weight.

Maps have 65,536 levels. Likelihood, scores and calibration depend only on the number of pixels and of votes at each
level, so images are added up and not stored. Levels stand for a ``probability``, (L,) float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from ldl.edges.benchmark.ground_truth import GREY_STEPS, check_same_size
from ldl.edges.benchmark.thinning import widen
from ldl.errors import naming
from ldl.progress import track

NEAR_PIXELS, BAND_PIXELS = 2.0, 5.0
"""Distances in pixels: the limit of ``near``, and the width of the band around the drawings of all annotators."""
CALIBRATION_BINS = 15
"""Bins of the calibration error."""
QUESTIONS = ("drawn", "near", "any")
REGIONS = ("all", "band")
Probabilities = Mapping[tuple[str, str], np.ndarray]
"""The probabilities of the levels, (65536,), by region and question."""


class Panel(NamedTuple):
    """The answers of the annotators of one image of H x W pixels.

    Attributes:
        answers: (H, W) float64 in 0..1, for each of :data:`QUESTIONS`.
        disagreement: (H, W) float64, the unbiased estimate of p (1 - p) from the answers to ``near``; None for a single
            annotator.
        band: (H, W) bool, the pixels within :data:`BAND_PIXELS` of the drawing of any annotator.
    """

    answers: dict[str, np.ndarray]
    disagreement: np.ndarray | None
    band: np.ndarray

    def region(self, name: str) -> np.ndarray:
        """Return the pixels of one of :data:`REGIONS`, (H, W) bool."""
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
        """Return the sum of two tallies."""
        return Tally(self.pixels + other.pixels, self.votes + other.votes)


def panel(boundaries: np.ndarray) -> Panel:
    """Return the answers of the annotators who drew ``boundaries``, (A, H, W) bool."""
    count = len(boundaries)
    near = np.stack([widen(drawn, NEAR_PIXELS) for drawn in boundaries])
    share = near.mean(0)
    disagreement = share * (1 - share) * count / (count - 1) if count > 1 else None
    answers = dict(zip(QUESTIONS, (boundaries.mean(0), share, near.any(0).astype(float))))
    return Panel(answers, disagreement, widen(boundaries.any(0), BAND_PIXELS))


def levels(probability: np.ndarray) -> np.ndarray:
    """Return the level of each pixel, 0 to 65,535, of (H, W) in 0..1."""
    return np.round(GREY_STEPS * np.asarray(probability, np.float64)).astype(np.int64)


def tally(level: np.ndarray, answer: np.ndarray, region: np.ndarray | None = None) -> Tally:
    """Count pixels and votes at every level.

    Args:
        level: (H, W) int, from :func:`levels`.
        answer: (H, W) in 0..1, shares of annotators.
        region: (H, W) bool, the pixels to count; None for all.

    Raises:
        LDLError: Sizes differ.
    """
    check_same_size("map and ground truth", level.shape, answer.shape, "predict at the size of the image")
    chosen = slice(None) if region is None else region.ravel()
    level, answer = level.ravel()[chosen], answer.ravel()[chosen]
    counted = np.bincount(level, minlength=GREY_STEPS + 1).astype(np.float64)
    return Tally(counted, np.bincount(level, answer, minlength=GREY_STEPS + 1))


def stated(steps: int = GREY_STEPS) -> np.ndarray:
    """Return the nominal probabilities of the levels, (65536,): k / 65535.

    ``steps`` is the number in the files that represents the probability 1.

    A 0 in a file represents all values that round to 0, and becomes their middle, 1 / (4 steps). A 1 is
    treated likewise.
    """
    end = 0.25 / steps
    return np.clip(np.arange(GREY_STEPS + 1) / GREY_STEPS, end, 1 - end)


def isotonic(tally: Tally) -> np.ndarray:
    """Fit the non-decreasing probabilities, (L,), of greatest likelihood, which also have the least Brier score.

    One vote for an edge is added at the lowest level that occurs and one against at the highest, so that no
    probability is 0 or 1. Levels that do not occur are interpolated linearly; without any pixel, all are 1/2.
    """
    pixels, votes = tally.pixels.copy(), tally.votes.copy()
    occurring = np.flatnonzero(pixels)
    if not len(occurring):
        return np.full(len(pixels), 0.5)
    votes[occurring[0]] += 1
    np.add.at(pixels, occurring[[0, -1]], 1)  # adds 2 if both are the same level
    fitted = isotonic_regression(votes[occurring] / pixels[occurring], weights=pixels[occurring]).x
    return np.interp(np.arange(len(pixels)), occurring, fitted)


def scores(tally: Tally, probability: np.ndarray, bins: int = CALIBRATION_BINS) -> dict[str, float]:
    """Return ``nll`` in nats, ``brier``, ``ece`` and ``ece_mass``, means over pixels and annotators; NaN for none.

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


def calibration_error(tally: Tally, probability: np.ndarray, bins: int = CALIBRATION_BINS, mass: bool = False) -> float:
    """Return the expected calibration error: mean over pixels of |votes - probability|, both averaged in a bin.

    Naeini, Cooper & Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015.

    Args:
        tally: Pixels and votes by level.
        probability: The probabilities of the levels.
        bins: Number of bins.
        mass: Use bins with the same number of pixels, not of the same width. Equal probabilities stay together, in the
            bin of their middle pixel.
    """
    gap, _, pixels = reliability(tally, probability, bins, mass)
    return float((pixels * np.abs(gap)).sum() / pixels.sum())


def reliability(
    tally: Tally, probability: np.ndarray, bins: int = CALIBRATION_BINS, mass: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each bin with pixels: share of votes minus mean probability, mean probability, pixels; (B,) each."""
    values, group = np.unique(probability, return_inverse=True)
    pixels, votes = (np.bincount(group, column) for column in tally)
    positions = (np.cumsum(pixels) - pixels / 2) / pixels.sum() if mass else values
    bin_of = np.minimum((bins * positions).astype(int), bins - 1)
    pixels, votes, total = (np.bincount(bin_of, column) for column in (pixels, votes, pixels * values))
    filled = pixels > 0
    pixels, votes, total = pixels[filled], votes[filled], total[filled]
    return (votes - total) / pixels, total / pixels, pixels


def correlation(tally: Tally, squares: float, probability: np.ndarray) -> float:
    """Return Pearson's correlation of p (1 - p) with the annotators' disagreement over pixels; NaN if one is constant.

    Args:
        tally: Pixels and the sum of disagreement by level.
        squares: Sum of squared disagreement.
        probability: The probabilities of the levels.
    """
    pixels, votes = tally
    expected, total = probability * (1 - probability), pixels.sum()
    if not total or not np.ptp(expected[pixels > 0]):
        return float("nan")
    mean_expected, mean_observed = (expected * pixels).sum() / total, votes.sum() / total
    centred = expected - mean_expected
    spread = (centred**2 * pixels).sum() * (squares - total * mean_observed**2)
    return float((centred * votes).sum() / np.sqrt(spread)) if spread > 0 else float("nan")


@dataclass
class VoteCounts:
    """Counts of votes over images.

    Attributes:
        tallies: Tallies by region and question.
        disagreement: Tallies of the disagreement of annotators, by region.
        squares: Sum of the squared disagreement, by region.
        steps: The number in the coarsest file that represents the probability 1.
        images: Number of images.
    """

    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    disagreement: dict[str, Tally] = field(default_factory=dict)
    squares: dict[str, float] = field(default_factory=dict)
    steps: int = GREY_STEPS
    images: int = 0

    def add(self, probability: np.ndarray, votes: Panel, steps: int = GREY_STEPS) -> None:
        """Count an image: its map, (H, W) in 0..1, against its annotators. Raises LDLError if they do not fit."""
        level = levels(probability)
        for region, question in product(REGIONS, QUESTIONS):
            _add_tally(self.tallies, (region, question), tally(level, votes.answers[question], votes.region(region)))
        if votes.disagreement is not None:
            for region in REGIONS:
                inside = votes.region(region)
                _add_tally(self.disagreement, region, tally(level, votes.disagreement, inside))
                squares = float((votes.disagreement[inside] ** 2).sum())
                self.squares[region] = self.squares.get(region, 0.0) + squares
        self.steps = min(self.steps, steps)
        self.images += 1

    def stated(self) -> Probabilities:
        """Return the nominal probabilities of the maps."""
        return dict.fromkeys(self.tallies, stated(self.steps))

    def calibrated(self) -> Probabilities:
        """Return the probabilities that :func:`isotonic` fits to these images, for each region and question."""
        return {key: isotonic(counted) for key, counted in self.tallies.items()}

    def constant(self) -> Probabilities:
        """Return the mean baseline: at every level, the base rate of these images."""
        rates = {key: counted.votes.sum() / (counted.pixels.sum() or np.nan) for key, counted in self.tallies.items()}
        return {key: np.full(GREY_STEPS + 1, rate) for key, rate in rates.items()}

    def scores(
        self, probabilities: Probabilities, bins: int = CALIBRATION_BINS
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Return the metrics of :func:`scores` by region and question."""
        measured: dict[str, Any] = {region: {} for region in REGIONS}
        for (region, question), counted in self.tallies.items():
            measured[region][question] = scores(counted, probabilities[region, question], bins)
        return measured

    def correlations(self, probabilities: Probabilities) -> dict[str, float]:
        """Return :func:`correlation` with the probability of ``near``, by region."""
        return {
            region: correlation(counted, self.squares[region], probabilities[region, "near"])
            for region, counted in self.disagreement.items()
        }


def count_votes(
    names: Sequence[str], load: Callable[[str], tuple[np.ndarray, int, np.ndarray]], show_progress: bool = False
) -> VoteCounts:
    """Count the votes of images.

    Args:
        names: The images.
        load: Returns the map of an image, (H, W) in 0..1, the number in its file that represents 1, and the
            boundaries of the annotators, (A, H, W) bool.
        show_progress: Draw a progress bar.

    Raises:
        LDLError: A map does not fit its ground truth.
    """
    counts = VoteCounts()
    for name in track(names, len(names), "counting votes", show_progress):
        probability, steps, boundaries = load(name)
        with naming(name):
            counts.add(probability, panel(boundaries), steps)
    return counts


def to_dict(counts: VoteCounts, ways: dict[str, Probabilities], bins: int = CALIBRATION_BINS) -> dict[str, Any]:
    """Return the scores of the base rates, and of each way to turn levels into probabilities, as plain values."""
    content: dict[str, Any] = {"images": counts.images, "near": NEAR_PIXELS, "band": BAND_PIXELS, "bins": bins}
    content["constant"] = counts.scores(counts.constant(), bins)
    for way, probabilities in ways.items():
        content[way] = counts.scores(probabilities, bins)
    content["disagreement"] = {way: counts.correlations(probabilities) for way, probabilities in ways.items()}
    return content


def _add_tally(tallies: dict[Any, Tally], key: Any, tally: Tally) -> None:
    tallies[key] = tallies[key].plus(tally) if key in tallies else tally
