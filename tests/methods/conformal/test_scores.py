"""Conformal scores, intervals, sets and thresholds against loops over their definitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal.scores import (
    HAIR,
    Scores,
    label_scores,
    label_sets,
    line_intervals,
    line_scores,
    predicted_set,
)
from ldl.validation.checkpoint import MAX_SCORES

AXES = ([0.0], [3.0, 4.0], [0.0, 1.0, 2.0, 3.0, 4.0], [-5.0, -1.0, 0.0, 0.5, 9.0, 10.0])


def draw(axis: np.ndarray, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Distributions, many with labels of no mass at the ends and within, and values within the labels' range."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(len(axis), 0.5), rows)
    p[p < 0.05] = 0
    value = rng.uniform(axis[0], axis[-1], rows)
    value[::3] = rng.choice(axis, len(value[::3]))
    return p, value


def one_score(p: np.ndarray, value: float, axis: np.ndarray) -> float:
    """By the definition, cell by cell."""
    gaps = np.diff(axis)
    edges = [axis[0] - (gaps[0] if len(gaps) else 1) / 2]
    edges += [(a + b) / 2 for a, b in zip(axis, axis[1:])]
    edges += [axis[-1] + (gaps[-1] if len(gaps) else 1) / 2]
    below = above = 0.0
    cells = [(mass / p.sum(), low, high) for mass, low, high in zip(p, edges, edges[1:]) if mass > 0]
    for mass, low, high in cells:
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        below, above = below + mass * share, above + mass * (1 - share)
    outside = max(cells[0][1] - value, value - cells[-1][2], 0.0)
    return 1 - 2 * min(below, above) + outside / ((axis[-1] - axis[0]) or 1)


@pytest.mark.parametrize("axis", AXES, ids=len)
def test_scores_are_those_of_loops(axis: list[float]) -> None:
    p, value = draw(np.array(axis), 60, 0)
    expected = [one_score(row, v, np.array(axis)) for row, v in zip(p, value)]
    np.testing.assert_allclose(line_scores(p, value, np.array(axis)), expected, atol=1e-12)
    np.testing.assert_allclose(line_scores(7 * p, value, np.array(axis)), expected, atol=1e-12)


@pytest.mark.parametrize("axis", AXES, ids=len)
@pytest.mark.parametrize("score", [0.0, 0.9, 1.2])
def test_an_interval_holds_the_values_of_at_most_its_score_and_no_others(axis: list[float], score: float) -> None:
    labels = np.array(axis)
    p, _ = draw(labels, 40, 1)
    fine = np.linspace(labels[0], labels[-1], 501)
    ends = line_intervals(p, labels, score)
    for row, (low, high) in zip(p, ends):
        scores = line_scores(np.repeat(row[None], len(fine), 0), fine, labels)
        held = (low <= fine) & (fine <= high)
        np.testing.assert_array_equal(
            held[np.abs(scores - score) > 2 * HAIR],
            (scores <= score)[np.abs(scores - score) > 2 * HAIR],
        )


@pytest.mark.parametrize("axis", AXES[1:], ids=len)
def test_the_interval_of_a_values_own_score_holds_it_and_a_smaller_one_does_not(axis: list[float]) -> None:
    labels = np.array(axis)
    p, value = draw(labels, 300, 2)
    scores = line_scores(p, value, labels)
    ends = np.stack([line_intervals(p[[n]], labels, score)[0] for n, score in enumerate(scores)])
    assert ((ends[:, 0] <= value) & (value <= ends[:, 1])).all()
    smaller = np.stack([line_intervals(p[[n]], labels, max(score - 1e-3, 0))[0] for n, score in enumerate(scores)])
    inside = (smaller[:, 0] <= value) & (value <= smaller[:, 1])
    # At the end of the range, and where a gap without mass has one score throughout, nothing is smaller.
    assert inside.mean() < 0.5 and not inside[(scores > 0.1) & ~np.isin(value, labels) & (scores < 0.99)].all()


def test_several_scores_at_once_and_nested() -> None:
    labels = np.array(AXES[3])
    p, _ = draw(labels, 50, 3)
    scores = np.array([0.1, 0.5, 0.99, 1.0, 1.3, np.inf])
    found = line_intervals(p, labels, scores)
    assert found.shape == (50, 6, 2)
    for number, score in enumerate(scores):
        np.testing.assert_array_equal(found[:, number], line_intervals(p, labels, float(score)))
    assert (np.diff(found[..., 0], axis=1) <= 0).all() and (np.diff(found[..., 1], axis=1) >= 0).all()
    assert (found[:, -1] == labels[[0, -1]]).all()


def test_a_sure_prediction_of_the_first_label_holds_it_at_every_level() -> None:
    labels, p = np.arange(5.0), np.eye(5)[:1]
    assert line_scores(p, np.zeros(1), labels)[0] == 0
    np.testing.assert_allclose(line_intervals(p, labels, 0.5), [[0, 0.25]], atol=1e-5)


def test_a_label_has_the_mass_of_the_likelier_ones_as_score() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(6), 50)
    expected = [[row[row > own].sum() for own in row] for row in p]
    np.testing.assert_allclose(label_scores(3 * p), expected, atol=1e-12)
    np.testing.assert_allclose(label_scores(np.full((1, 4), 0.25)), [[0, 0.25, 0.5, 0.75]])


def test_the_likeliest_label_belongs_to_every_set() -> None:
    assert label_sets(np.array([[1.0, 0.6, 0.9]]), 0.0).tolist() == [[False, True, False]]


def test_a_predicted_set_is_the_smallest_with_its_mass() -> None:
    rng = np.random.default_rng(1)
    labels, p = LabelSpace.nominal(list("abcdef")), rng.dirichlet(np.ones(6), 100)
    held = predicted_set(labels, p, 0.7)
    assert ((p * held).sum(1) >= 0.7).all()
    least = np.where(held, p, 1.0).min(1)
    assert ((p * held).sum(1) - least < 0.7).all()
    assert predicted_set(labels, np.eye(6)[:1], 0.99).sum() == 1


def test_labels_with_values_and_strange_levels_are_refused() -> None:
    with pytest.raises(LDLError, match="take interval"):
        predicted_set(LabelSpace.ordinal([1, 2]), np.eye(2), 0.9)
    with pytest.raises(LDLError, match="level 90 must be above 0 and below 1"):
        predicted_set(LabelSpace.nominal("ab"), np.eye(2), 90)


def risk(found: Scores, threshold: float) -> float:
    return float(found.weight[found.score > threshold].sum())


@pytest.mark.parametrize("percent", [50, 80, 90, 95])
def test_of_rows_it_is_the_score_of_the_exact_rank(percent: int) -> None:
    for count in (1, 4, 9, 10, 19, 100, 101):
        scores = np.random.default_rng(count).normal(size=count)
        rank = -(-Fraction(percent, 100) * (count + 1) // 1)  # rounded up
        expected = np.inf if rank > count else np.sort(scores)[int(rank) - 1]
        assert Scores.of(scores).threshold(percent / 100) == expected, count


@pytest.mark.parametrize(("level", "grouped", "soft"), [(0.3, False, False), (0.77, True, False), (0.9, True, True)])
def test_of_weights_and_true_distributions_it_bounds_the_mean_miss(level: float, grouped: bool, soft: bool) -> None:
    """Also of groups, if these have unequal weights; without weights, see test_units.py."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, 60) if grouped else np.arange(60)
    mass = rng.dirichlet(np.ones(4), 60) if soft else None
    weight = rng.uniform(0.5, 2, 60) if grouped else np.ones(60)
    scores = rng.normal(size=(60, 4) if soft else 60)
    found = Scores.of(scores, mass, groups if grouped else None, weight)
    units = len(np.unique(groups))
    assert found.units == units and found.weight.sum() == pytest.approx(units)
    share = weight / np.bincount(groups)[groups]
    share *= units / share.sum()
    misses = []
    for threshold in np.unique(scores):
        missed = (scores > threshold) * (1 if mass is None else mass)
        missed = missed.sum(1) if soft else missed
        misses.append(((share * missed).sum() + 1) / (units + 1))
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
    assert len(found.score) <= MAX_SCORES and found.weight.sum() == pytest.approx(30_000)
    assert (np.diff(found.score) >= 0).all()
    whole = Scores(np.sort(scores.ravel()), mass.ravel()[np.argsort(scores.ravel())], 30_000)
    for level in (0.1, 0.5, 0.9, 0.999):
        exact, near = whole.threshold(level), found.threshold(level)
        assert exact <= near and risk(whole, exact) - risk(whole, near) <= 2 * 30_000 / MAX_SCORES
