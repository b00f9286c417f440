"""Matching of edge pixels: the assignment against scipy's, and counts against every threshold by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from ldl.edges.benchmark.matching import MAX_DIST, OUTLIER, Counts, Side, count, enter, neighbours, new_scratch
from ldl.edges.benchmark.thinning import thin
from ldl.errors import LDLError

LEVELS = np.linspace(0.05, 0.95, 19)


def reference_cost(first: np.ndarray, second: np.ndarray, reach: float) -> tuple[float, int]:
    """Return the least cost and its number of pairs, from the whole matrix with a slot for every unpaired pixel."""
    distance = np.linalg.norm(np.argwhere(first)[:, None] - np.argwhere(second)[None], axis=-1)
    n, m = distance.shape
    cost = np.zeros((n + m, m + n))
    cost[:n, :m] = np.where(distance <= reach, distance - OUTLIER * reach, 1e9)
    rows, columns = linear_sum_assignment(cost)
    paired = (rows < n) & (columns < m) & (cost[rows, columns] < 0)
    return float(cost[rows, columns].sum()), int(paired.sum())


def correspond(first: np.ndarray, second: np.ndarray, reach: float) -> np.ndarray:
    """Assign edge pixels (H, W) to those of a second map: the flat number of the partner, or -1."""
    near = neighbours(reach, first.shape[1])
    padded = [np.pad(drawn, near.margin) for drawn in (first, second)]
    size, width = padded[0].size, padded[0].shape[1]
    one, two = (Side(np.zeros(size, bool), np.full(size, -1), np.zeros(size, np.int64)) for _ in padded)
    two.present[:] = padded[1].ravel()
    scratch = new_scratch(size)
    for pixel in np.flatnonzero(padded[0]):
        one.present[pixel] = True
        enter(pixel, one, two, near, scratch, False)
    inside = slice(near.margin, -near.margin)
    y, x = np.divmod(one.mate.reshape(padded[0].shape)[inside, inside], width)
    return np.where(y >= 0, (y - near.margin) * first.shape[1] + x - near.margin, -1)


def pairs_of(first: np.ndarray, mate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of both ends of every pair."""
    at = np.flatnonzero(first & (mate >= 0))
    return np.stack(np.divmod(at, first.shape[1]), 1), np.stack(np.divmod(mate.ravel()[at], first.shape[1]), 1)


maps = st.tuples(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 12), st.sampled_from([1.0, 2.3, 4.337]))


@settings(max_examples=40, deadline=None)
@given(maps)
def test_the_assignment_costs_least(drawn: tuple[int, int, int, float]) -> None:
    seed, height, width, reach = drawn
    rng = np.random.default_rng(seed)
    first, second = (rng.random((height, width)) < rng.random() for _ in range(2))
    mate = correspond(first, second, reach)
    assert (mate[~first] == -1).all()
    one, two = pairs_of(first, mate)
    distance = np.linalg.norm(one - two, axis=1)
    assert len(np.unique(two, axis=0)) == len(two) and second[tuple(two.T)].all()
    assert (distance <= reach).all()
    cost, pairs = reference_cost(first, second, reach)
    assert len(one) == pairs
    assert (distance - OUTLIER * reach).sum() == pytest.approx(cost, abs=1e-6)


def reference(strength: np.ndarray, boundaries: np.ndarray, thinning: bool) -> Counts:
    """Match every threshold and annotator from scratch."""
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
@pytest.mark.parametrize("seed", range(2))
def test_counts_are_those_of_every_threshold_by_itself(seed: int, thinning: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = (23, 31) if seed % 2 else (31, 23)
    strength = rng.random(shape) ** rng.uniform(1, 4)
    boundaries = rng.random((3, *shape)) < 0.15
    expected = reference(strength, boundaries, thinning)
    counts = count(strength, boundaries, LEVELS, 8 * MAX_DIST, thinning)
    for name in Counts._fields:
        np.testing.assert_array_equal(getattr(counts, name), getattr(expected, name), err_msg=name)


def test_no_edge_on_either_side() -> None:
    nothing = np.zeros((2, 20, 20), bool)
    counts = count(np.zeros((20, 20)), nothing, LEVELS)
    assert all((column == 0).all() for column in counts)


def test_thresholds_may_be_many() -> None:
    counts = count(np.eye(9), np.eye(9, dtype=bool)[None], np.linspace(0.1, 1, 2**15))
    assert (counts.detected == 9).all() and (counts.correct == 9).all()


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
