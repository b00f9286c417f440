"""Scores of units: against an enumeration of all draws, at both ends, and the coverage of new units in between."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ldl.methods.conformal import units
from ldl.methods.conformal.scores import Scores
from ldl.methods.conformal.units import mean_rank_scores, weights_of


def by_enumeration(score: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> list[float]:
    """The definition, over all combinations of one score of each unit, with their probabilities."""
    rank = np.array([weight[score <= own].sum() for own in score])
    totals = np.bincount(unit, weight)
    count = len(totals)
    heavy = (totals**2).sum() / totals.sum()
    means = np.zeros(count)
    for chosen in itertools.product(*(np.flatnonzero(unit == number) for number in range(count))):
        rows = sorted(chosen, key=lambda row: rank[row])
        sums = totals[unit[rows]].cumsum()
        for k in range(count):
            # The level of rank k + 1, and what a draw must hold for it, where a new unit has the weight ``heavy``.
            level = (k + 1) / (count + 1)
            enough = [rank[row] for row, held in zip(rows, sums) if held >= level * (count + heavy) - 1e-9]
            means[k] += min(enough, default=rank.max()) * np.prod(weight[rows] / totals[unit[rows]])
    order = np.argsort(score)
    return list(np.interp(means, rank[order], score[order]))


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_mean_rank_over_all_draws(weighted: bool) -> None:
    rng = np.random.default_rng(4)
    unit = np.array([0, 0, 1, 1, 1, 2, 2, 3])
    score = rng.normal(size=8)
    weight = weights_of(unit, np.bincount(unit), rng.uniform(0.5, 3, 8) if weighted else None)
    found = mean_rank_scores(score, weight, unit)
    assert (np.diff(found) >= 0).all() and len(found) == 1000
    np.testing.assert_allclose(found[249::250], by_enumeration(score, weight, unit), atol=0.01)


def test_a_heavier_group_counts_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """With weights, coverage is that of rows drawn in proportion to them; with few groups it is above the level."""
    monkeypatch.setattr(units, "DRAWN_SCORES", 50_000)
    rng = np.random.default_rng(0)

    def table(count: int) -> tuple[np.ndarray, np.ndarray]:
        heavy = (rng.random((count, 1)) < 0.3).repeat(8, 1)
        score = np.abs(rng.normal(size=(count, 1)) + rng.normal(size=(count, 8))) * (1 + heavy)
        return score.ravel(), np.where(heavy, 4.0, 1.0).ravel()

    fresh, share = table(50_000)
    for count, most in ((9, 0.97), (29, 0.94)):
        held = []
        for _ in range(200):
            score, weight = table(count)
            threshold = Scores.of(score, groups=np.arange(count).repeat(8), weight=weight).threshold(0.9)
            held.append(share[fresh <= threshold].sum() / share.sum())
        assert 0.9 - 2 * np.std(held) / 200**0.5 <= np.mean(held) <= most


def test_equal_scores_of_a_unit_and_single_ones_stay() -> None:
    scores = np.random.default_rng(0).normal(size=7)
    np.testing.assert_array_equal(Scores.of(scores).score, np.sort(scores))
    np.testing.assert_array_equal(Scores.of(scores, groups=np.arange(7)).score, np.sort(scores))
    found = Scores.of(scores.repeat(5), groups=np.arange(7).repeat(5))
    step = len(found.score) // 7
    np.testing.assert_allclose(found.score[step - 1 :: step], np.sort(scores), atol=1e-12)
    assert found.units == 7 and found.weight.sum() == pytest.approx(7)
    assert [found.threshold(rank / 8) for rank in range(1, 8)] == pytest.approx(np.sort(scores))


def test_neither_the_order_of_rows_nor_a_rising_line_matters() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.normal(size=60), rng.integers(0, 12, 60)
    found, order = Scores.of(scores, groups=groups).score, rng.permutation(60)
    np.testing.assert_array_equal(Scores.of(scores[order], groups=groups[order]).score, found)
    of_labels, mass = rng.normal(size=(60, 4)), rng.dirichlet(np.ones(4), 60)
    shuffled = Scores.of(of_labels[order], mass[order])
    np.testing.assert_allclose(shuffled.score, Scores.of(of_labels, mass).score, rtol=1e-12)
    np.testing.assert_allclose(Scores.of(3 * scores + 5, groups=groups).score, 3 * found + 5)


LAWS = {
    "unrelated": lambda units, rng: rng.normal(size=(units, 8)),
    "half": lambda units, rng: rng.normal(size=(units, 8)) + rng.normal(size=(units, 1)),
    "nearly equal": lambda units, rng: rng.normal(size=(units, 8)) + 4 * rng.normal(size=(units, 1)),
    "other scale": lambda units, rng: abs(rng.normal(size=(units, 8))) * np.exp(rng.normal(size=(units, 1))),
    "a tenth far off": lambda units, rng: rng.normal(size=(units, 8)) + 6 * (rng.random((units, 1)) < 0.1),
}


@pytest.mark.parametrize("count", [9, 16])
@pytest.mark.parametrize("law", LAWS)
def test_new_units_are_held_as_often_as_the_level_says(law: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 9 units: counting rows holds up to 3 points too few, and weights of 1 a unit up to 9 points too many."""
    monkeypatch.setattr(units, "DRAWN_SCORES", 50_000)
    rng = np.random.default_rng(0)
    fresh = np.sort(LAWS[law](100_000, rng)[:, 0])
    group = np.arange(count).repeat(8)
    calibrated = [Scores.of(LAWS[law](count, rng).ravel(), groups=group) for _ in range(400)]
    for level in (0.5, 0.8, 0.9):
        held = [np.searchsorted(fresh, scores.threshold(level), side="right") / len(fresh) for scores in calibrated]
        assert np.mean(held) == pytest.approx(level, abs=4 * np.std(held) / 400**0.5), level
