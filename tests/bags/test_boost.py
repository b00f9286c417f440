"""Decision stumps against a search of every threshold in turn, and the steps along them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.bags import boost as stumps
from ldl.bags.boost import best_stump, presort
from ldl.bags.layout import PackedBags
from ldl.bags.likelihood import Model, likelihood, line_search

NO_ROWS = np.empty((0, 0), np.float32)
"""The likelihood asks for scores alone."""


def _problem(seed: int, rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    # Few values, so that there are ties, of both signs and with both zeros.
    values = rng.integers(-3, 4, (rows, width)).astype(np.float32)
    values *= rng.choice([-1, 1], values.shape).astype(np.float32)
    return values, rng.normal(size=rows)


def _score(rows: np.ndarray, weights: np.ndarray, feature: int, threshold: float, bound: bool) -> float:
    """Weighted error of the better sign, or the sum of sqrt(W+ W-) over both sides."""
    right = rows[:, feature] > threshold
    if not bound:
        says = np.where(right, 1, -1)
        wrong = np.abs(weights[weights * says < 0]).sum()
        return min(wrong, np.abs(weights).sum() - wrong)
    return sum(
        sqrt(weights[side & (weights > 0)].sum() * -weights[side & (weights < 0)].sum()) for side in (right, ~right)
    )


def _least(rows: np.ndarray, weights: np.ndarray, bound: bool) -> float:
    scores = []
    for feature in range(rows.shape[1]):
        values = np.unique(rows[:, feature])
        scores += [_score(rows, weights, feature, (a + b) / 2, bound) for a, b in zip(values, values[1:])]
    return min(scores, default=np.inf)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.integers(2, 30), st.integers(1, 5), st.booleans(), st.sampled_from(["error", "bound"]))
def test_the_best_of_all_thresholds_is_found(seed: int, count: int, width: int, real: bool, cut: Any) -> None:
    rows, weights = _problem(seed, count, width)
    stump = best_stump(rows, presort(rows), weights, np.arange(width), real, cut, 1e-3)
    bound = real and cut == "bound"
    least = _least(rows, weights, bound)
    if stump is None:
        assert least == np.inf
        return
    assert _score(rows, weights, stump.feature, stump.threshold, bound) == pytest.approx(least, abs=1e-9)
    right = rows[:, stump.feature] > stump.threshold
    assert 0 < right.sum() < count
    assert set(stump(rows)) == {stump.low, stump.high}
    if real:
        prior = 1e-3 * np.abs(weights).sum()
        for side, output in ((right, stump.high), (~right, stump.low)):
            odds = (weights[side & (weights > 0)].sum() + prior) / (prior - weights[side & (weights < 0)].sum())
            assert output == pytest.approx(log(odds) / 2, abs=1e-12)
    else:
        assert (weights * stump(rows)).sum() >= 0 and {stump.low, stump.high} == {-1.0, 1.0}


def test_threads_do_not_choose_between_equal_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features that part the rows alike, summed in another order, are equal but for rounding."""
    monkeypatch.setattr(stumps, "VALUES_PER_THREAD", 1)
    with ThreadPoolExecutor(8) as pool:
        for seed in range(40):
            rows, weights = _problem(seed, 12, 4)
            rows = np.hstack([rows, -rows, rows * 2, -rows * 2])
            arguments = (rows, presort(rows), weights, np.arange(16), True, "bound", 1e-3)
            alone = best_stump(*arguments)
            assert [best_stump(*arguments, pool, threads) for threads in (2, 3, 8)] == [alone] * 3, seed


def test_thresholds_part_neighbouring_numbers() -> None:
    low = np.float32(1)
    rows = np.array([[low], [np.nextafter(low, np.float32(2))]], np.float32)
    stump = best_stump(rows, presort(rows), np.array([-1.0, 1.0]), np.arange(1), False, "bound", 1e-3)
    assert stump is not None and stump(rows).tolist() == [-1, 1]


def test_equal_values_are_not_parted() -> None:
    rows = np.array([[0.0], [-0.0], [0.0]], np.float32)
    assert (presort(rows) < 0).all()
    assert best_stump(rows, presort(rows), np.array([1.0, -1.0, 1.0]), np.arange(1), True, "bound", 1e-3) is None


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.integers(0, 4), st.floats(1, 50), st.sampled_from([0.01, 1.0, 30.0]))
def test_a_step_never_makes_the_likelihood_worse(seed: int, pooling: int, r: float, scale: float) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], rng.integers(1, 6, 10).cumsum()])
    scores = 3 * rng.normal(size=(starts[-1], 2))
    direction = scale * rng.normal(size=starts[-1])
    label = rng.integers(0, 2, 10)
    bags = PackedBags(NO_ROWS, starts, label / 10, (1 - label) / 10)
    model, weights = Model(pooling, r, False), np.empty_like(scores)
    before = likelihood(scores, bags, model, weights)
    downhill = (weights[:, 1] * direction).sum() > 0
    step = line_search(scores, direction, 1, bags, model, 10.0, 0.7)
    assert 0 <= step <= 10
    assert downhill or step == 0
    moved = scores.copy()
    moved[:, 1] += step * direction
    after = likelihood(moved, bags, model, weights)
    assert after < before if step else after == before


def _bumpy(seed: int) -> tuple[np.ndarray, np.ndarray, PackedBags, Model]:
    """Four bags, along whose direction the likelihood has several minima."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], rng.integers(1, 6, 4).cumsum()])
    scores, direction = 3 * rng.normal(size=(starts[-1], 1)), rng.normal(size=starts[-1])
    direction *= 10.0 ** rng.integers(0, 2)
    label = rng.integers(0, 2, 4)
    bags = PackedBags(NO_ROWS, starts, label / 4, (1 - label) / 4)
    return scores, direction, bags, Model(int(rng.integers(0, 5)), float(rng.uniform(1, 20)), False)


@pytest.mark.parametrize("seed", [16, 375, 642, 1543, 2009])
def test_the_best_of_all_steps_looked_at_is_taken(seed: int) -> None:
    """A longer one may be worse again, and a slope may vanish, or fall, where the likelihood is worse than at 0."""
    scores, direction, bags, model = _bumpy(seed)
    losses = [
        likelihood(scores + step * direction[:, None], bags, model, np.empty_like(scores))
        for step in (line_search(scores, direction, 0, bags, model, 10.0, 1.0), 0, 1, 2, 4, 8)
    ]
    assert losses[0] < losses[1] and losses[0] == min(losses)


def test_a_shorter_step_that_would_not_help_is_not_taken() -> None:
    scores, direction, bags, model = _bumpy(181)
    assert line_search(scores, direction, 0, bags, model, 10.0, 0.2) == 2.0
    assert line_search(scores, direction, 0, bags, model, 10.0, 0.9) == 1.8


def test_the_step_is_the_minimum_along_a_line() -> None:
    """Of bags of one the likelihood is concave: the slope vanishes at the best step."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=200)
    label = (direction + 2 * rng.normal(size=200) > 0).astype(float)
    scores, weights = np.zeros((200, 1)), np.empty((200, 1))
    arguments = PackedBags(NO_ROWS, np.arange(201), label / 200, (1 - label) / 200), Model(0, 5.0, False)
    step = line_search(scores, direction, 0, *arguments, 100.0, 1.0)
    likelihood(scores + step * direction[:, None], *arguments, weights)
    slope = abs(weights[:, 0] @ direction)
    likelihood(scores, *arguments, weights)
    assert step > 0 and slope <= 1e-3 * abs(weights[:, 0] @ direction)


def test_a_perfect_learner_goes_as_far_as_it_may() -> None:
    label = np.array([1.0, 0, 1, 0])
    arguments = PackedBags(NO_ROWS, np.arange(5), label / 4, (1 - label) / 4), Model(0, 5.0, False)
    assert line_search(np.zeros((4, 1)), 2 * label - 1, 0, *arguments, 3.0, 1.0) == 3.0
    assert line_search(np.zeros((4, 1)), 1 - 2 * label, 0, *arguments, 3.0, 1.0) == 0.0
