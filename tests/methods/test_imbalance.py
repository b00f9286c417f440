"""Subsets with a simulated imbalance keep the wanted number of rows, in the shape of a Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldl.errors import LDLError
from ldl.methods.imbalance import bell_subset


@settings(max_examples=40, deadline=None)
@example([1, 1, 4, 4, 32], 0.75, 0)  # running sums that end on a half, but for rounding
@given(st.lists(st.integers(1, 40), min_size=2, max_size=9), st.floats(0, 0.99), st.integers(0, 5))
def test_a_bell_keeps_the_wanted_number_and_its_shape(counts: list[int], removed: float, seed: int) -> None:
    values = np.random.default_rng(seed).permutation(np.repeat(15.0 * np.arange(len(counts)) - 30, counts))
    distance = np.abs(15.0 * np.arange(len(counts)) - 30)
    least = sum(count for count, far in zip(counts, distance) if far == distance.min())
    kept = round((1 - removed) * len(values))
    if kept < least:
        with pytest.raises(LDLError, match="leaves no bell: at most"):
            bell_subset(values, removed, seed)
        return
    rows = bell_subset(values, removed, seed)
    assert len(rows) == kept == len(np.unique(rows)) and (np.diff(rows) > 0).all()
    left = np.array([(values[rows] == value).sum() for value in 15.0 * np.arange(len(counts)) - 30])
    cut = left < np.array(counts)
    # What was cut lies, to within rounding, on one bell: nearer values keep more.
    for near in np.flatnonzero(cut):
        for far in np.flatnonzero(distance > distance[near]):
            assert left[far] <= left[near] + 1


def test_a_bell_is_a_gaussian() -> None:
    values = np.repeat(np.arange(-90.0, 91.0, 15.0), 1000)
    rows = bell_subset(values, 0.7)
    left = np.array([(values[rows] == value).sum() for value in np.unique(values)])
    slope = np.log(left[7:10] / 1000) / -(np.array([15.0, 30.0, 45.0]) ** 2)
    np.testing.assert_allclose(slope, slope[0], rtol=0.01)
    assert left[6] == 1000 and np.abs(left - left[::-1]).max() <= 1
