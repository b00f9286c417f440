"""Thinning and assignment against plain references; what stays true of any assignment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from ldl.edges.benchmark.assignment import OUTLIER, correspond
from ldl.edges.benchmark.thinning import thin


def reference_thin(mask: np.ndarray) -> np.ndarray:
    """Guo & Hall 1989, pixel by pixel: both halves of a pass, until a pass removes nothing."""
    image = np.pad(mask, 1).astype(int)
    while True:
        before = image.copy()
        for half in range(2):
            removed = np.zeros_like(image)
            for y, x in np.argwhere(image):
                p2, p3, p4, p5 = image[y - 1, x], image[y - 1, x + 1], image[y, x + 1], image[y + 1, x + 1]
                p6, p7, p8, p9 = image[y + 1, x], image[y + 1, x - 1], image[y, x - 1], image[y - 1, x - 1]
                crossings = (
                    ((1 - p2) & (p3 | p4)) + ((1 - p4) & (p5 | p6)) + ((1 - p6) & (p7 | p8)) + ((1 - p8) & (p9 | p2))
                )
                first = (p9 | p2) + (p3 | p4) + (p5 | p6) + (p7 | p8)
                pairs = min(first, (p2 | p3) + (p4 | p5) + (p6 | p7) + (p8 | p9))
                blocked = (p2 | p3 | (1 - p5)) & p4 if half == 0 else (p6 | p7 | (1 - p9)) & p8
                removed[y, x] = crossings == 1 and 2 <= pairs <= 3 and not blocked
            image &= 1 - removed
        if (image == before).all():
            return image[1:-1, 1:-1].astype(bool)


def reference_cost(first: np.ndarray, second: np.ndarray, reach: float) -> tuple[float, int]:
    """The least cost and its number of pairs: the whole matrix, with a place to stay alone for every pixel."""
    distance = np.linalg.norm(np.argwhere(first)[:, None] - np.argwhere(second)[None], axis=-1)
    n, m = distance.shape
    cost = np.zeros((n + m, m + n))
    cost[:n, :m] = np.where(distance <= reach, distance - OUTLIER * reach, 1e9)
    rows, columns = linear_sum_assignment(cost)
    paired = (rows < n) & (columns < m) & (cost[rows, columns] < 0)
    return float(cost[rows, columns].sum()), int(paired.sum())


def pairs_of(first: np.ndarray, mate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of both ends of every pair."""
    at = np.flatnonzero(first & (mate >= 0))
    return np.stack(np.divmod(at, first.shape[1]), 1), np.stack(np.divmod(mate.ravel()[at], first.shape[1]), 1)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.97])
def test_thinning_is_guo_and_halls(share: float) -> None:
    rng = np.random.default_rng(int(100 * share))
    for _ in range(3):
        mask = rng.random((17, 23)) < share
        np.testing.assert_array_equal(thin(mask), reference_thin(mask))
        np.testing.assert_array_equal(thin(np.asfortranarray(mask)), reference_thin(mask))


def test_a_bar_thins_to_a_line_and_a_line_stays() -> None:
    bar = np.zeros((11, 30), bool)
    bar[3:8, 3:27] = True
    line = thin(bar)
    assert (line.sum(0) <= 1).all() and line.sum() >= 18
    np.testing.assert_array_equal(thin(line), line)


maps = st.tuples(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 12), st.sampled_from([1.0, 2.3, 4.337]))


@settings(max_examples=60, deadline=None)
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


def test_equal_maps_are_paired_in_place() -> None:
    drawn = np.random.default_rng(0).random((30, 40)) < 0.3
    mate = correspond(drawn, drawn, 4.3)
    np.testing.assert_array_equal(mate[drawn], np.flatnonzero(drawn))


def test_a_longer_chain_of_pairs_is_preferred_to_near_ones() -> None:
    """Two pixels, two partners: the nearest pair would leave the others alone, and that costs more."""
    first, second = np.zeros((1, 12), bool), np.zeros((1, 12), bool)
    first[0, [2, 5]] = True
    second[0, [5, 8]] = True
    assert correspond(first, second, 3.0)[0, [2, 5]].tolist() == [5, 8]
