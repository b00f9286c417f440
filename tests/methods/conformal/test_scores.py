"""Thresholds of calibration rows against the definition, by search over all scores."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.methods.conformal.scores import Scores
from ldl.trust.calibration import MOST_SCORES


def risk(found: Scores, threshold: float) -> float:
    return float(found.weight[found.score > threshold].sum())


@pytest.mark.parametrize("count", [1, 4, 9, 10, 19, 100, 101])
@pytest.mark.parametrize("percent", [50, 80, 90, 95])
def test_of_rows_it_is_the_score_of_the_exact_rank(count: int, percent: int) -> None:
    scores = np.random.default_rng(count).normal(size=count)
    rank = -(-Fraction(percent, 100) * (count + 1) // 1)  # rounded up
    expected = np.inf if rank > count else np.sort(scores)[int(rank) - 1]
    assert Scores.of(scores).threshold(percent / 100) == expected


def test_ties_share_a_threshold() -> None:
    assert Scores.of(np.array([1.0, 2, 2, 2, 2, 2, 2, 2, 2, 3])).threshold(0.5) == 2


@pytest.mark.parametrize("level", [0.3, 0.77, 0.9])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("soft", [False, True])
def test_of_groups_and_true_distributions_it_bounds_the_mean_miss(level: float, grouped: bool, soft: bool) -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, 60) if grouped else None
    mass = rng.dirichlet(np.ones(4), 60) if soft else None
    scores = rng.normal(size=(60, 4) if soft else 60)
    found = Scores.of(scores, mass, groups)
    units = 60 if groups is None else len(np.unique(groups))
    assert found.units == units and found.weight.sum() == pytest.approx(units)
    misses = []
    for threshold in np.unique(scores):
        missed = (scores > threshold) * (1 if mass is None else mass)
        missed = missed.sum(1) if soft else missed
        owner = np.arange(60) if groups is None else groups
        each = [missed[owner == name].mean() for name in np.unique(owner)]
        misses.append((sum(each) + 1) / (units + 1))
    expected = np.unique(scores)[np.array(misses) <= 1 - level + 1e-12][0]
    assert found.threshold(level) == expected


def test_too_few_units_give_infinity() -> None:
    assert Scores.of(np.arange(8.0)).threshold(0.9) == np.inf
    assert Scores.of(np.arange(9.0)).threshold(0.9) == 8
    assert Scores.of(np.arange(100.0), groups=np.arange(100) % 8).threshold(0.9) == np.inf


def test_many_scores_are_joined_and_thresholds_only_rise() -> None:
    rng = np.random.default_rng(0)
    scores, mass = rng.normal(size=(30_000, 3)), rng.dirichlet(np.ones(3), 30_000)
    found = Scores.of(scores, mass)
    assert len(found.score) <= MOST_SCORES and found.weight.sum() == pytest.approx(30_000)
    assert (np.diff(found.score) >= 0).all()
    whole = Scores(np.sort(scores.ravel()), mass.ravel()[np.argsort(scores.ravel())], 30_000)
    for level in (0.1, 0.5, 0.9, 0.999):
        exact, near = whole.threshold(level), found.threshold(level)
        assert exact <= near and risk(whole, exact) - risk(whole, near) <= 2 * 30_000 / MOST_SCORES


@pytest.mark.parametrize("level", [0, 1, 90, -0.1, float("nan")])
def test_strange_levels_are_refused(level: float) -> None:
    with pytest.raises(LDLError, match="must be above 0 and below 1"):
        Scores.of(np.arange(9.0)).threshold(level)


@pytest.mark.parametrize("scores", [np.zeros(0), np.array([0.5, np.nan]), np.array([np.inf])])
def test_scores_that_are_none_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(LDLError, match="at least one row and finite scores"):
        Scores.of(scores)
