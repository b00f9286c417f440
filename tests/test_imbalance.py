"""Label densities and weights: against definitions written out, and what they guarantee."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.errors import LDLError
from ldl.imbalance import inverse_density_weights, label_density


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
