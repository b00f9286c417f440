"""Scores of units: against an enumeration of all draws, at both ends, and the coverage of new units in between."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ldl.methods.conformal.scores import Scores
from ldl.methods.conformal.units import mean_rank_scores


def by_enumeration(score: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> list[float]:
    """The definition, over all combinations of one score of each unit, with their probabilities."""
    rank = np.array([weight[score <= own].sum() for own in score])
    means = np.zeros(unit.max() + 1)
    for chosen in itertools.product(*(np.flatnonzero(unit == number) for number in range(len(means)))):
        means += np.sort(rank[list(chosen)]) * np.prod(weight[list(chosen)])
    order = np.argsort(score)
    return list(np.interp(means, rank[order], score[order]))


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_mean_rank_over_all_draws(weighted: bool) -> None:
    rng = np.random.default_rng(4)
    unit = np.array([0, 0, 1, 1, 1, 2, 2, 3])
    score = rng.normal(size=8)
    weight = rng.uniform(0.5, 3, 8) if weighted else np.ones(8)
    weight /= np.bincount(unit, weight)[unit]
    found = mean_rank_scores(score, weight, unit)
    assert (np.diff(found) >= 0).all() and len(found) == 1000
    np.testing.assert_allclose(found[249::250], by_enumeration(score, weight, unit), atol=0.01)


def test_equal_scores_of_a_unit_and_single_ones_stay() -> None:
    scores = np.random.default_rng(0).normal(size=7)
    np.testing.assert_array_equal(Scores.of(scores).score, np.sort(scores))
    np.testing.assert_array_equal(Scores.of(scores, groups=np.arange(7)).score, np.sort(scores))
    found = Scores.of(scores.repeat(5), groups=np.arange(7).repeat(5))
    step = len(found.score) // 7
    np.testing.assert_allclose(found.score[step - 1 :: step], np.sort(scores), atol=1e-12)
    assert found.units == 7 and found.weight.sum() == pytest.approx(7)
    assert [found.threshold(rank / 8) for rank in range(1, 8)] == pytest.approx(np.sort(scores))


def test_neither_the_order_of_rows_nor_names_of_groups_nor_a_rising_line_matters() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.normal(size=60), rng.integers(0, 12, 60)
    found, order = Scores.of(scores, groups=groups).score, rng.permutation(60)
    np.testing.assert_array_equal(Scores.of(scores[order], groups=groups[order]).score, found)
    np.testing.assert_array_equal(Scores.of(scores, groups=rng.permutation(12)[groups]).score, found)
    of_labels, mass = rng.normal(size=(60, 4)), rng.dirichlet(np.ones(4), 60)
    shuffled = Scores.of(of_labels[order], mass[order], groups[order])
    np.testing.assert_allclose(shuffled.score, Scores.of(of_labels, mass, groups).score, rtol=1e-12)
    np.testing.assert_allclose(Scores.of(3 * scores + 5, groups=groups).score, 3 * found + 5)


def test_distributions_of_groups_give_a_score_for_their_labels() -> None:
    """With certain labels, they are the scores of these labels; equal weights of the rows change nothing."""
    rng = np.random.default_rng(0)
    scores, label, groups = rng.normal(size=(60, 4)), rng.integers(0, 4, 60), np.arange(60) % 12
    found = Scores.of(scores, np.eye(4)[label], groups)
    single = Scores.of(scores[np.arange(60), label], None, groups, np.full(60, 3.0))
    np.testing.assert_allclose(found.score, single.score)


LAWS = {
    "unrelated": lambda units, rng: rng.normal(size=(units, 8)),
    "half": lambda units, rng: rng.normal(size=(units, 8)) + rng.normal(size=(units, 1)),
    "nearly equal": lambda units, rng: rng.normal(size=(units, 8)) + 4 * rng.normal(size=(units, 1)),
    "other scale": lambda units, rng: abs(rng.normal(size=(units, 8))) * np.exp(rng.normal(size=(units, 1))),
    "a tenth far off": lambda units, rng: rng.normal(size=(units, 8)) + 6 * (rng.random((units, 1)) < 0.1),
}


@pytest.mark.parametrize("count", [9, 16])
@pytest.mark.parametrize("law", LAWS)
def test_new_units_are_held_as_often_as_the_level_says(law: str, count: int, few_draws: None) -> None:
    """With 9 units: counting rows holds up to 3 points too few, and weights of 1 a unit up to 9 points too many."""
    rng = np.random.default_rng(0)
    fresh = np.sort(LAWS[law](100_000, rng)[:, 0])
    group = np.arange(count).repeat(8)
    calibrated = [Scores.of(LAWS[law](count, rng).ravel(), groups=group) for _ in range(400)]
    for level in (0.5, 0.8, 0.9):
        held = [np.searchsorted(fresh, scores.threshold(level), side="right") / len(fresh) for scores in calibrated]
        assert np.mean(held) == pytest.approx(level, abs=4 * np.std(held) / 400**0.5), level
