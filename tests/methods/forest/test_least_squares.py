"""Least squares of rows that change from one call to the next are those of the rows alone."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.methods.forest import directions
from ldl.methods.forest.least_squares import Changing, ridge


@pytest.mark.parametrize(("width", "middle"), [(4, 0.0), (4, 1e6), (200, 0.0)])
def test_of_any_sequence_of_rows(width: int, middle: float) -> None:
    rng = np.random.default_rng(width)
    rows, costs = rng.normal(middle, 1, (120, width)), rng.uniform(0.1, 3, 120)
    changing = Changing(rows, costs, 0.7)
    own = np.ones(120, bool)
    for share in (0.0, 0.1, 0.02, 0.9, 0.02, 0.0):
        own = own ^ (rng.random(120) < share)
        values = rng.normal(size=120)
        weights, bias = changing.solve(own, values)
        expected = ridge(rows[own], values[own], costs[own], 0.7)
        np.testing.assert_allclose(weights, expected[0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(rows @ weights + bias, rows @ expected[0] + expected[1], atol=1e-6)


def test_only_what_changes_is_summed() -> None:
    """Sums that were wrong stay so where few rows change, and are forgotten where many do."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3))
    changing, own, values = Changing(rows, np.ones(50), 1.0), np.ones(50, bool), rng.normal(size=50)
    whole = changing.solve(own, values)[0]
    changing._sums *= 2
    few = own.copy()
    few[:5] = False
    assert not np.allclose(changing.solve(few, values)[0], ridge(rows[few], values[few], np.ones(45), 1.0)[0])
    many = np.arange(50) < 10
    np.testing.assert_allclose(changing.solve(many, values)[0], ridge(rows[many], values[many], np.ones(10), 1.0)[0])
    np.testing.assert_allclose(changing.solve(own, values)[0], whole)


@pytest.mark.parametrize("width", [5, 150])
def test_machines_of_many_numbers_are_those_of_few(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(width)
    rows, costs = rng.normal(size=(100, width)), rng.uniform(0.1, 3, 100)
    cluster = (rows[:, 0] + rng.normal(size=100) > 0.5).astype(np.uint8)
    few = directions.separate(rows, cluster, costs, 2.0)
    monkeypatch.setattr(directions, "FEW", 0)
    many = directions.separate(rows, cluster, costs, 2.0)
    np.testing.assert_allclose(many[0], few[0], atol=1e-6)
    assert many[1] == pytest.approx(few[1], abs=1e-6)
