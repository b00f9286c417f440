"""Splits that part two clusters of rows."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.grown_trees import RULES, plant, problem, same, smooth

from ldl.methods.forest.binning import make_columns
from ldl.methods.forest.cluster_splits import log_table
from ldl.methods.forest.grower import (
    ADAPTIVE,
    HISTOGRAM,
    LAYOUTS,
    grow,
)
from ldl.methods.forest.sampling import stream


def test_histogram_is_exact_where_each_value_has_a_bin() -> None:
    for seed in range(30):
        x, d = problem(seed)
        assert same(plant(x, d, RULES), plant(x, d, RULES._replace(search=HISTOGRAM))), seed
    x, d = smooth(rows=3000)
    assert not same(plant(x, d, RULES), plant(x, d, RULES._replace(search=HISTOGRAM)))


@pytest.mark.parametrize("shared", [0, 300])
@pytest.mark.parametrize("beta", [0.0, 8.0])
def test_adaptive_step_is_that_of_equation_5(beta: float, shared: int) -> None:
    """One feature, distinct values but for one that many rows may share: the midpoints are those of a plain loop.

    Rows of the shared value are one step of it, and rows count once, however often they are drawn.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.permutation(500).astype(np.float32)[:, None]
        d = np.eye(2, dtype=np.float32)[(x[:, 0] + rng.normal(0, 90, 500) > 260).astype(int)]
        x[(x >= 50) & (x < 50 + shared)] = 50
        rules = RULES._replace(depth=1, block=1, search=ADAPTIVE, alpha=0.05, beta=beta)
        columns, rows = make_columns(x, LAYOUTS[ADAPTIVE]), np.arange(500, dtype=np.int32)
        draws = rng.integers(1, 4, 500).astype(np.int32)
        tree, other = (
            grow(columns, rows, draws, d, log_table(draws.sum()), rules._replace(min_gain=least), stream(0, 0))
            for least in (0.0, 0.1)
        )  # fmt: skip
        drawn, ones, values = np.repeat(x[:, 0], draws), np.repeat(d[:, 1], draws), np.unique(x)

        def entropy(part: np.ndarray) -> float:
            share = np.array([part.mean(), 1 - part.mean()])
            return float(-len(part) * sum(p * np.log(p) for p in share if p > 0))

        looked_at: dict[int, float] = {}
        left = 1
        while left < len(values):
            below = drawn < values[left]
            gain = entropy(ones) - entropy(ones[below]) - entropy(ones[~below])
            looked_at[left] = gain
            most = max(looked_at.values())
            left += max(1, int(0.05 * 500 / (1 + np.exp(beta * (gain / most - 0.5)))))
        best = max(looked_at, key=lambda left: looked_at[left])
        assert tree.evaluations == other.evaluations == len(looked_at)
        assert tree.threshold[0] == other.threshold[0] == (values[best - 1] + values[best]) / 2


def test_a_threshold_lies_between_neighbouring_floats() -> None:
    below = np.float32(1.0)
    above = np.nextafter(below, np.float32(2))
    x = np.array([[below], [above]] * 10)
    d = np.array([[1, 0], [0, 1]] * 10, np.float32)
    tree = plant(x, d, RULES)
    assert tree.feature.tolist() == [0, -1, -1] and below <= tree.threshold[0] < above
