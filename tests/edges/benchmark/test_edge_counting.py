"""Counts over thresholds: the assignment that follows the map is that of every threshold by itself."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ldl.edges.benchmark.assignment import correspond
from ldl.edges.benchmark.counting import MAX_DIST, Counts, count
from ldl.edges.benchmark.thinning import thin
from ldl.errors import LDLError

LEVELS = np.linspace(0.05, 0.95, 19)


def reference(strength: np.ndarray, boundaries: np.ndarray, thinning: bool) -> Counts:
    """Every threshold and annotator from nothing."""
    reach = MAX_DIST * 8 * np.hypot(*strength.shape)
    columns = []
    for level in LEVELS:
        edge = strength >= level
        edge = thin(edge) if thinning else edge
        mates = [correspond(edge, drawn, reach) >= 0 for drawn in boundaries]
        recalled = sum(int(mate.sum()) for mate in mates)
        columns.append((recalled, int(boundaries.sum()), int(np.any(mates, axis=0).sum()), int(edge.sum())))
    return Counts(*np.array(columns).T)


@pytest.mark.parametrize("thinning", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_every_threshold_by_itself(seed: int, thinning: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = (23, 31) if seed % 2 else (31, 23)
    strength = rng.random(shape) ** rng.uniform(1, 4)
    boundaries = rng.random((3, *shape)) < 0.15
    expected = reference(strength, boundaries, thinning)
    found = count(strength, boundaries, LEVELS, 8 * MAX_DIST, thinning)
    for name in Counts._fields:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_an_annotator_agrees_with_himself_wholly() -> None:
    drawn = thin(np.random.default_rng(0).random((40, 40)) < 0.3)
    counts = count(drawn.astype(float), drawn[None], np.array([0.5]))
    assert counts.recalled == counts.drawn == counts.correct == counts.detected == drawn.sum()


def test_no_edge_on_either_side() -> None:
    nothing = np.zeros((2, 20, 20), bool)
    counts = count(np.zeros((20, 20)), nothing, LEVELS)
    assert all((column == 0).all() for column in counts)


def test_thresholds_may_be_many() -> None:
    counts = count(np.eye(9), np.eye(9, dtype=bool)[None], np.linspace(0.1, 1, 2**15))
    assert (counts.detected == 9).all() and (counts.correct == 9).all()


def test_a_whole_image_takes_less_than_three_seconds() -> None:
    """321 x 481 pixels, 5 annotators, 99 thresholds, on a map whose every pixel has some strength."""
    rng = np.random.default_rng(0)
    lines = [thin(rng.random((321, 481)) < 0.02) for _ in range(5)]
    strength = np.clip(np.mean(lines, 0) + 0.3 * rng.random((321, 481)) ** 4, 0, 1)
    count(strength[:9, :9], np.array(lines)[:, :9, :9], LEVELS)
    start = time.thread_time()
    count(strength, np.array(lines), np.arange(1, 100) / 100)
    assert time.thread_time() - start < 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strength": np.zeros((4, 5))}, "differ in size, 4x5 and 20x20"),
        ({"strength": np.full((20, 20), np.nan)}, "NaN"),
        ({"strength": np.full((20, 20), 255)}, "the edge map holds 255; strengths must be in 0..1: divide"),
        ({"strength": np.full((20, 20), -0.5)}, "the edge map holds -0.5; strengths must be in 0..1"),
        ({"thresholds": np.array([0.5, 0.5])}, "must rise"),
        ({"max_dist": 0.0}, "max_dist 0.0"),
    ],
)
def test_bad_arguments_are_named(change: dict, message: str) -> None:
    arguments = {"strength": np.zeros((20, 20)), "boundaries": np.zeros((2, 20, 20), bool), "thresholds": LEVELS}
    with pytest.raises(LDLError, match=message):
        count(**(arguments | change))
