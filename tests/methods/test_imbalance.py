"""Label densities and weights: against definitions written out, and what they guarantee."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldl.errors import LDLError
from ldl.methods.imbalance import bell_subset, inverse_density_weights, label_density


def _smoothed(values: np.ndarray, width: float, sigma: float) -> np.ndarray:
    """The density as a double loop over bins, which are mirrored at both ends."""
    bins = np.floor((values - values.min()) / width + 0.5).astype(int)
    counts = np.bincount(bins)
    radius = int(4 * sigma / width + 0.5)
    kernel = {step: np.exp(-0.5 * (step * width / sigma) ** 2) for step in range(-radius, radius + 1)}
    mirrored = list(counts) + list(counts[::-1])
    density = [
        sum(kernel[step] * mirrored[(bin + step) % len(mirrored)] for step in kernel) / sum(kernel.values())
        for bin in range(len(counts))
    ]
    return np.array(density)[bins]


@pytest.mark.parametrize(("width", "sigma"), [(1.0, 0.7), (1.0, 2.0), (5.0, 9.0), (0.25, 1.0)])
def test_density_is_the_smoothed_histogram(width: float, sigma: float) -> None:
    values = np.random.default_rng(3).gamma(2.0, 8.0, 200)
    np.testing.assert_allclose(label_density(values, width, sigma), _smoothed(values, width, sigma), rtol=1e-9)


def test_without_smoothing_it_counts_equal_values() -> None:
    assert label_density(np.array([3, 7, 3, 3, 40])).tolist() == [3, 1, 3, 3, 1]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=80), st.floats(0, 5), st.sampled_from([0.0, 0.5, 1.0]))
def test_weights_have_mean_one_and_never_rise_with_the_density(ages: list[int], sigma: float, power: float) -> None:
    values = np.array(ages, np.uint8)
    weights = inverse_density_weights(values, sigma=sigma, power=power)
    assert weights.min() > 0 and weights.mean() == pytest.approx(1)
    order = np.argsort(label_density(values, sigma=sigma), kind="stable")
    assert (np.diff(weights[order]) <= 1e-9 * weights.max()).all()


def test_inverse_frequencies_give_each_label_the_same_weight() -> None:
    values = np.array([1.0] * 8 + [2.0] * 2 + [9.0])
    weights = inverse_density_weights(values)
    totals = [weights[values == label].sum() for label in (1, 2, 9)]
    assert totals == pytest.approx([11 / 3] * 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": np.array([1.0, np.nan])}, "finite values"),
        ({"values": np.array([])}, "finite values"),
        ({"values": np.ones(3), "width": 0.0}, "width 0.0 must be positive"),
        ({"values": np.ones(3), "sigma": -1.0}, "sigma -1.0"),
        ({"values": np.ones(3), "power": -1.0}, "power -1.0 must be at least 0"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        inverse_density_weights(**arguments)


@settings(max_examples=100, deadline=None)
@example([1, 1, 4, 4, 32], 0.75, 0, 0.0)  # running sums that end on a half, but for rounding
@given(st.lists(st.integers(1, 40), min_size=2, max_size=9), st.floats(0, 0.99), st.integers(0, 5), st.floats(-50, 50))
def test_a_bell_keeps_the_wanted_number_and_its_shape(
    counts: list[int], removed: float, seed: int, centre: float
) -> None:
    values = np.random.default_rng(seed).permutation(np.repeat(15.0 * np.arange(len(counts)) - 30, counts))
    distance = np.abs(15.0 * np.arange(len(counts)) - 30 - centre)
    least = sum(count for count, far in zip(counts, distance) if far == distance.min())
    kept = round((1 - removed) * len(values))
    if kept < least:
        with pytest.raises(LDLError, match="leaves no bell: at most"):
            bell_subset(values, removed, seed, centre)
        return
    rows = bell_subset(values, removed, seed, centre)
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


@pytest.mark.parametrize("removed", [-0.1, 1.0, float("nan")])
def test_shares_out_of_range_are_refused(removed: float) -> None:
    with pytest.raises(LDLError, match=r"must be in \[0, 1\)"):
        bell_subset(np.arange(5.0), removed)
