"""What follows of distributions, held against sums over single labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from ldl.errors import LDLError
from ldl.inference import Predictions
from ldl.labels import LabelSpace

GRID = LabelSpace.grid([-30, 0, 30], [-10, 0, 15, 20], "degrees", ["pitch", "yaw"])
HOLES = LabelSpace.grid([-30, 0, 30], [-10, 0, 15], only=[(-30, 0), (0, -10), (0, 15), (30, 15)])
UNEVEN = LabelSpace.ordinal([-1.5, 0, 2, 10], "stars")


def drawn(labels: LabelSpace, seed: int = 0, rows: int = 20) -> Predictions:
    distribution = np.random.default_rng(seed).dirichlet(np.full(len(labels), 0.3), rows).astype(np.float32)
    return Predictions(distribution, labels.decode(torch.from_numpy(distribution)).numpy(), labels)


def marginals(labels: LabelSpace, row: np.ndarray) -> list[dict[float, float]]:
    """Of every axis the mass of each value."""
    found: list[dict[float, float]] = [{} for _ in labels.axes]
    for point, mass in zip(labels.points.tolist(), row.astype(float)):
        for axis, value in enumerate(point):
            found[axis][value] = found[axis].get(value, 0.0) + mass
    return found


@pytest.mark.parametrize("labels", [UNEVEN, GRID, HOLES], ids=["line", "grid", "holes"])
def test_deviation_and_interval_are_those_of_the_labels(labels: LabelSpace) -> None:
    found = drawn(labels)
    assert found.std is not None and found.value is not None and found.std.shape == found.value.shape
    for level in (0.5, 0.8, 0.9):
        interval = found.interval(level)
        assert interval.shape == (*found.value.shape, 2)
        for number, row in enumerate(found.distribution):
            for axis, mass in enumerate(marginals(labels, row)):
                place = (number,) if labels.ndim == 1 else (number, axis)
                mean = sum(value * share for value, share in mass.items())
                variance = sum((value - mean) ** 2 * share for value, share in mass.items())
                assert found.std[place] == pytest.approx(variance**0.5, abs=1e-4)
                values = sorted(mass)
                below = np.cumsum([mass[value] for value in values])
                ends = [values[int((below < tail - 1e-6).sum())] for tail in ((1 - level) / 2, (1 + level) / 2)]
                np.testing.assert_allclose(interval[place], ends)


@settings(max_examples=10, deadline=None)
@given(some.integers(0, 10**6), some.floats(0.01, 0.99))
def test_an_interval_holds_its_share_and_a_wider_one_holds_it(seed: int, level: float) -> None:
    found = drawn(UNEVEN, seed, 5)
    lower, upper = found.interval(level).T
    values = np.array(UNEVEN.axes[0])
    inside = (values >= lower[:, None]) & (values <= upper[:, None])
    assert ((found.distribution * inside).sum(1) >= level - 1e-5).all()
    # No more than the tails is left out on either side.
    assert ((found.distribution * (values > upper[:, None])).sum(1) <= (1 - level) / 2 + 1e-5).all()
    wide = found.interval((1 + level) / 2)
    assert (wide[:, 0] <= lower).all() and (wide[:, 1] >= upper).all()


def test_a_map_has_them_at_every_pixel() -> None:
    flat = drawn(GRID, rows=12)
    assert flat.value is not None and flat.std is not None
    maps = Predictions(flat.distribution.reshape(2, 3, 2, -1), flat.value.reshape(2, 3, 2, 2), GRID)
    np.testing.assert_array_equal(maps.std, flat.std.reshape(2, 3, 2, 2))
    np.testing.assert_array_equal(maps.interval(0.5), flat.interval(0.5).reshape(2, 3, 2, 2, 2))


def test_names_alone_have_neither() -> None:
    labels = LabelSpace.nominal(["a", "b"])
    found = Predictions(np.full((3, 2), 0.5, np.float32), None, labels)
    assert found.std is None and len(found) == 3
    with pytest.raises(LDLError, match="quantile needs labels with values, but these are nominal: a, b"):
        found.interval(0.9)


@pytest.mark.parametrize("level", [0, 1, float("nan")])
def test_another_level_is_refused(level: float) -> None:
    with pytest.raises(LDLError, match="must be above 0 and below 1, such as 0.9"):
        drawn(UNEVEN).interval(level)
