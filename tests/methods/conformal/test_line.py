"""Central intervals over a line against loops over cells, and against the score of every value."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.methods.conformal.line import HAIR, line_intervals, line_scores

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
@pytest.mark.parametrize("score", [0.0, 0.3, 0.9, 1.0, 1.2])
def test_an_interval_holds_the_values_of_at_most_its_score_and_no_others(axis: list[float], score: float) -> None:
    labels = np.array(axis)
    p, _ = draw(labels, 40, 1)
    fine = np.linspace(labels[0], labels[-1], 501)
    ends = line_intervals(p, labels, score)
    for row, (low, high) in zip(p, ends):
        scores = line_scores(np.repeat(row[None], len(fine), 0), fine, labels)
        held = (low <= fine) & (fine <= high)
        np.testing.assert_array_equal(
            held[np.abs(scores - score) > 2 * HAIR], (scores <= score)[np.abs(scores - score) > 2 * HAIR]
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


def test_a_level_of_the_mass_is_in_the_interval() -> None:
    rng = np.random.default_rng(4)
    labels, p = np.arange(30.0), rng.dirichlet(np.ones(30), 20)
    whole = labels[:, None] + np.linspace(-0.5, 0.5, 201)[None, :-1] + 0.0025
    for row, (low, high) in zip(p, line_intervals(p, labels, 0.8)):
        mass = (row[:, None] / 200 * ((low <= whole) & (whole <= high))).sum()
        assert mass == pytest.approx(0.8, abs=0.01)


def test_what_single_precision_cannot_tell_from_none_is_no_mass() -> None:
    labels = np.arange(4.0)
    almost = np.array([[5e-10, 0.5, 0.5, 5e-10]])
    assert line_scores(almost, np.zeros(1), labels)[0] == pytest.approx(1 + 0.5 / 3)
