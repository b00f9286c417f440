"""Votes of many images against their maps: counted, calibrated, scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ldl.edges.benchmark.left_out import Smoothing, predictions
from ldl.edges.benchmark.maps import STEPS
from ldl.edges.benchmark.proper import BINS, base_rate, correlation, isotonic, scores, stated
from ldl.edges.benchmark.votes import BAND, NEAR, QUESTIONS, REGIONS, Panel, Tally, levels, panel, tally, within
from ldl.errors import LDLError
from ldl.progress import track

Probabilities = Mapping[tuple[str, str], np.ndarray]
"""What the levels stand for, (65536,), by region and question."""


@dataclass
class VoteCounts:
    """What was counted on images so far.

    Attributes:
        tallies: By region and question.
        disagreement: That of annotators, by region.
        squares: Sum of its squares, by region.
        steps: The number that stands for 1 in the coarsest file.
        images: How many.
    """

    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    disagreement: dict[str, Tally] = field(default_factory=dict)
    squares: dict[str, float] = field(default_factory=dict)
    steps: int = STEPS
    images: int = 0

    def add(self, probability: np.ndarray, votes: Panel, steps: int = STEPS) -> None:
        """Count an image: its map, (H, W) in 0..1, against its annotators. Raises LDLError where they do not fit."""
        level = levels(probability)
        for region, question in product(REGIONS, QUESTIONS):
            self.count(region, question, tally(level, votes.answers[question], votes.region(region)))
        if votes.disagreement is not None:
            for region in REGIONS:
                there = votes.region(region)
                _put(self.disagreement, region, tally(level, votes.disagreement, there))
                squares = float((votes.disagreement[there] ** 2).sum())
                self.squares[region] = self.squares.get(region, 0.0) + squares
        self.steps = min(self.steps, steps)
        self.images += 1

    def count(self, region: str, question: str, found: Tally) -> None:
        """Add the pixels and votes of an image."""
        _put(self.tallies, (region, question), found)

    def stated(self) -> Probabilities:
        """The maps taken at their word."""
        return dict.fromkeys(self.tallies, stated(self.steps))

    def calibrated(self) -> Probabilities:
        """The rising function of the level, of each region and question, under which these votes are likeliest."""
        return {key: isotonic(found) for key, found in self.tallies.items()}

    def constant(self) -> Probabilities:
        """The base rates of these images, whatever the level."""
        return {key: np.full(STEPS + 1, base_rate(found)) for key, found in self.tallies.items()}

    def scores(self, probabilities: Probabilities, bins: int = BINS) -> dict[str, dict[str, dict[str, float]]]:
        """By region and question: ``nll``, ``brier``, ``ece``, ``ece_mass``."""
        found: dict[str, Any] = {region: {} for region in REGIONS}
        for (region, question), counted in self.tallies.items():
            found[region][question] = scores(counted, probabilities[region, question], bins)
        return found

    def correlations(self, probabilities: Probabilities) -> dict[str, float]:
        """Of each region: :func:`ldl.edges.benchmark.proper.correlation`, with the probability of ``near``."""
        return {
            region: correlation(found, self.squares[region], probabilities[region, "near"])
            for region, found in self.disagreement.items()
        }


def count_votes(
    names: Sequence[str], load: Callable[[str], tuple[np.ndarray, int, np.ndarray]], show_progress: bool = False
) -> VoteCounts:
    """Count images.

    Args:
        names: The images.
        load: Gives the map of an image, (H, W) in 0..1, the number that stands for 1 in its file, and what annotators
            drew, (A, H, W) bool.
        show_progress: Draw a progress bar.

    Raises:
        LDLError: no images, or a map that does not fit its ground truth; the message names the image.
    """
    if not names:
        raise LDLError("there are no images whose votes could be counted")
    counts = VoteCounts()
    for name in track(names, len(names), "counting votes", show_progress):
        probability, steps, boundaries = load(name)
        try:
            counts.add(probability, panel(boundaries), steps)
        except LDLError as error:
            raise LDLError(f"{name}: {error}") from None
    return counts


def to_dict(counts: VoteCounts, ways: dict[str, Probabilities], bins: int = BINS) -> dict[str, Any]:
    """Scores as plain values: of the base rates of these images, and of each way to read the levels."""
    return {
        "images": counts.images,
        "near": NEAR,
        "band": BAND,
        "bins": bins,
        "constant": counts.scores(counts.constant(), bins),
        **{way: counts.scores(probabilities, bins) for way, probabilities in ways.items()},
        "disagreement": {way: counts.correlations(probabilities) for way, probabilities in ways.items()},
    }


def count_left_out(boundaries: np.ndarray, smoothing: Mapping[str, Smoothing], into: VoteCounts) -> None:
    """Count an image whose annotators, (A, H, W) bool, are left out in turn and foretold by the others.

    The answer to ``any`` is that of all, as for a detector, at the levels that the others foretell of ``near``: they
    know all votes of it but one.

    Args:
        boundaries: What they drew.
        smoothing: For ``drawn``, ``near`` or both.
        into: Where to add.

    Raises:
        LDLError: a single annotator.
    """
    votes, near = panel(boundaries), within(boundaries, NEAR)
    for question, how in smoothing.items():
        for probability, answer in predictions(boundaries if question == "drawn" else near, how):
            level, answers = levels(probability), {question: answer}
            if question == "near":
                answers["any"] = votes.answers["any"]
            for region, (name, found) in product(REGIONS, answers.items()):
                pixels, yes = tally(level, found, votes.region(region))
                into.count(region, name, Tally(pixels / len(boundaries), yes / len(boundaries)))
    into.images += 1


def _put(tallies: dict[Any, Tally], key: Any, found: Tally) -> None:
    tallies[key] = tallies[key].plus(found) if key in tallies else found
