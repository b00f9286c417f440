"""Votes against maps: every score is that of a loop over pixels and annotators."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.edges.benchmark.ground_truth import (
    GREY_STEPS,
)
from ldl.edges.benchmark.votes import (
    NEAR_PIXELS,
    Tally,
    VoteCounts,
    calibration_error,
    correlation,
    isotonic,
    levels,
    panel,
    scores,
    stated,
)


def scene(seed: int, annotators: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return a map, on few levels so that they hold several pixels, and the drawings of annotators."""
    rng = np.random.default_rng(seed)
    boundaries = rng.random((annotators, 13, 17)) < 0.08
    boundaries[1:] |= boundaries[:1] & (rng.random((annotators - 1, 13, 17)) < 0.7)
    return np.round(40 * rng.random((13, 17)) ** 3) / 40, boundaries


def near(boundaries: np.ndarray, reach: float) -> np.ndarray:
    reached = np.zeros_like(boundaries)
    for a, y, x in np.argwhere(boundaries):
        rows, columns = np.mgrid[: boundaries.shape[1], : boundaries.shape[2]]
        reached[a] |= (rows - y) ** 2 + (columns - x) ** 2 <= reach**2
    return reached


@pytest.mark.parametrize("region", ["all", "band"])
@pytest.mark.parametrize("question", ["drawn", "near", "any"])
def test_scores_are_those_of_a_loop_over_votes(question: str, region: str) -> None:
    counts, votes = VoteCounts(), []
    for seed in (1, 2):
        probability, boundaries = scene(seed, 3 + seed)
        counts.add(probability, panel(boundaries), 255)
        marks = boundaries if question == "drawn" else near(boundaries, 2)
        marks = marks.any(0, keepdims=True) if question == "any" else marks
        band = near(boundaries, 5).any(0)
        for y, x in np.argwhere(band | (region == "all")):
            p = min(max(probability[y, x], 1 / 1020), 1 - 1 / 1020)
            votes += [(p, mark[y, x], 1 / len(marks)) for mark in marks]
    p, drawn, weight = np.array(votes, float).T
    measured = counts.scores(counts.stated(), bins=5)[region][question]
    rounding = 1e-4  # 40 levels are none of the 65,536
    assert measured["nll"] == pytest.approx(
        -np.average(np.log(np.where(drawn, p, 1 - p)), weights=weight), abs=rounding
    )
    assert measured["brier"] == pytest.approx(np.average((p - drawn) ** 2, weights=weight), abs=rounding)
    gaps = [weight[in_bin].sum() * abs(np.average((drawn - p)[in_bin], weights=weight[in_bin]))
            for in_bin in ((p >= k / 5) & (p < (k + 1) / 5) for k in range(5)) if in_bin.any()]  # fmt: skip
    assert measured["ece"] == pytest.approx(sum(gaps) / weight.sum(), abs=rounding)
    assert counts.constant()[region, question][0] == pytest.approx(np.average(drawn, weights=weight))
    # A constant at the base rate is calibrated, and the best constant.
    constant = counts.scores(counts.constant())[region][question]
    assert constant["ece"] == pytest.approx(0, abs=1e-12) and constant["ece_mass"] == pytest.approx(0, abs=1e-12)
    rate = np.average(drawn, weights=weight)
    assert constant["brier"] == pytest.approx(rate * (1 - rate))


def small(seed: int, size: int = 7) -> Tally:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 5, size).astype(float)
    pixels[rng.integers(size)] = 3
    return Tally(pixels, pixels * rng.random(size))


@pytest.mark.parametrize("seed", range(3))
def test_calibration_is_the_likeliest_rising_function(seed: int) -> None:
    """The greatest lower average over the least upper one (Robertson et al. 1988)."""
    tally = small(seed)
    pixels, votes = tally.pixels.copy(), tally.votes.copy()
    occurring = np.flatnonzero(pixels)
    votes[occurring[0]] += 1
    pixels[occurring[0]] += 1
    pixels[occurring[-1]] += 1
    fitted = isotonic(tally)
    for position, k in enumerate(occurring):
        averages = [
            [
                votes[occurring[i : j + 1]].sum() / pixels[occurring[i : j + 1]].sum()
                for j in range(position, len(occurring))
            ]
            for i in range(position + 1)
        ]
        assert fitted[k] == pytest.approx(max(map(min, averages)))
    assert (np.diff(fitted) >= 0).all() and fitted[0] > 0 and fitted[-1] < 1
    many = Tally(1e6 * tally.pixels, 1e6 * tally.votes)
    fitted = isotonic(many)
    best = scores(many, fitted)
    for other in np.sort(np.random.default_rng(seed).random((20, len(pixels)))):
        mixed = scores(many, 0.9 * fitted + 0.1 * other)
        assert best["nll"] <= mixed["nll"] + 1e-6 and best["brier"] <= mixed["brier"] + 1e-6


def test_bins_of_equal_mass_keep_ties_together() -> None:
    tally = Tally(np.array([60.0, 20.0, 10.0, 10.0]), np.array([3.0, 4.0, 1.0, 9.0]))
    probability = np.array([0.01, 0.02, 0.5, 0.5])
    # Middles at .3, .7 and .9 of the pixels: with two bins the first level is alone.
    gaps = abs(3 - 0.6), abs(4 + 10 - 0.4 - 10)
    assert calibration_error(tally, probability, 2, mass=True) == pytest.approx(sum(gaps) / 100)
    # The second level begins in the first half, but its middle, .55, lies in the other.
    later = Tally(np.array([30.0, 50.0, 20.0]), np.array([0.0, 9.0, 2.0]))
    assert calibration_error(later, np.array([0.1, 0.2, 0.3]), 2, mass=True) == pytest.approx((3 + 5) / 100)
    assert calibration_error(tally, probability, 2) == pytest.approx((abs(7 - 1.0) + abs(10 - 10)) / 100)


def test_disagreement_is_that_of_pairs_and_its_correlation_pearsons() -> None:
    probability, boundaries = scene(3)
    votes = panel(boundaries)
    marks = near(boundaries, NEAR_PIXELS).astype(float)
    pairs = [marks[a] * (1 - marks[b]) for a in range(4) for b in range(4) if a != b]
    np.testing.assert_allclose(votes.disagreement, np.mean(pairs, 0))
    counts = VoteCounts()
    counts.add(probability, votes)
    p = stated()[levels(probability)].ravel()
    expected = np.corrcoef(p * (1 - p), votes.disagreement.ravel())[0, 1]
    assert counts.correlations(counts.stated())["all"] == pytest.approx(expected)
    assert np.isnan(counts.correlations(counts.constant())["all"])
    assert panel(boundaries[:1]).disagreement is None


def test_images_without_an_edge() -> None:
    """The band is empty, so its scores are NaN."""
    counts = VoteCounts()
    counts.add(np.full((4, 5), 0.25), panel(np.zeros((2, 4, 5), bool)))
    measured = counts.scores(counts.calibrated())
    assert measured["all"]["drawn"]["nll"] < 0.05 and np.isnan(measured["band"]["drawn"]["nll"])
    assert np.isnan(counts.constant()["band", "any"][0]) and counts.calibrated()["band", "any"][GREY_STEPS] == 0.5
    assert np.isnan(correlation(counts.disagreement["band"], counts.squares["band"], stated()))
