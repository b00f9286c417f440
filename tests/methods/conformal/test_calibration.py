"""Split conformal prediction: coverage over draws of rows, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, CrossConformal
from ldl.methods.conformal.scores import marginals

AGES = LabelSpace.ordinal(range(0, 21), "years")


GRID = LabelSpace.grid([0, 1, 2], [-3, 0, 5], only=[(0, -3), (0, 5), (1, 0), (2, -3), (2, 0)])


NAMES = LabelSpace.nominal(list("abcde"))


def ages(rows: int, rng: np.random.Generator, persons: int | None = None) -> tuple[np.ndarray, ...]:
    """Predictions that are far too sharp, true values and persons, whose errors go together."""
    group = np.arange(rows) if persons is None else rng.integers(0, persons, rows)
    middle = rng.uniform(4, 16, rows)
    value = middle + 2 * rng.normal(size=group.max() + 1)[group] + 0.3 * rng.normal(size=rows)
    p = np.exp(-((np.arange(21) - middle[:, None]) ** 2))
    return p / p.sum(1, keepdims=True), value.clip(0, 20), group


def covered(ends: np.ndarray, value: np.ndarray) -> np.ndarray:
    return (ends[..., 0] <= value) & (value <= ends[..., 1])


@pytest.mark.parametrize(("rows", "level"), [(39, 0.9), (50, 0.8), (9, 0.5)])
def test_split_intervals_have_the_exact_coverage(rows: int, level: float) -> None:
    rng = np.random.default_rng(0)
    held, bare = [], []
    for _ in range(200):
        (p, value, _), (q, true, _) = ages(rows, rng), ages(50, rng)
        found = Conformal.fit(AGES, p, value)
        assert found.units == rows
        held.append(covered(found.interval(q, level), true).mean())
        bare.append((np.abs(q @ np.arange(21) - true) < 0.7).mean())
    exact = np.ceil(level * (rows + 1) - 1e-9) / (rows + 1)
    assert np.mean(held) == pytest.approx(exact, abs=4 * np.std(held) / 200**0.5)
    assert np.mean(bare) < 0.5


def test_persons_need_their_own_calibration(few_draws: None) -> None:
    """Of new persons, where errors of a person go together: by rows they are held too rarely, by persons as stated."""
    rng = np.random.default_rng(0)
    rows, persons = [], []
    for _ in range(400):
        p, value, group = ages(90, rng, persons=9)
        q, true, _ = ages(200, rng)
        rows.append(covered(Conformal.fit(AGES, p, value).interval(q, 0.9), true).mean())
        persons.append(covered(Conformal.fit(AGES, p, value, group).interval(q, 0.9), true).mean())
    error = np.std(persons) / 400**0.5
    assert np.mean(persons) == pytest.approx(0.9, abs=3 * error) and np.mean(rows) < 0.9 - 4 * error


def test_every_axis_of_a_grid_has_its_own() -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(150):
        p = rng.dirichlet(np.ones(5), 89)
        points = GRID.points.double().numpy()
        value = points[[rng.choice(5, p=row) for row in p]]
        found = Conformal.fit(GRID, p[:59], value[:59])
        ends = found.interval(p[59:], 0.8)
        assert ends.shape == (30, 2, 2)
        held.append(covered(ends, value[59:]).mean(0))
    assert (np.mean(held, 0) >= 0.79).all()
    first, second = marginals(GRID, p)
    np.testing.assert_allclose(first[:, 0], p[:, 0] + p[:, 1])
    np.testing.assert_allclose(second[:, 1], p[:, 2] + p[:, 4])


@pytest.mark.parametrize("soft", [True, False])
def test_sets_hold_the_true_mass(soft: bool) -> None:
    rng = np.random.default_rng(0)
    held, sizes = [], []
    for _ in range(150):
        true = rng.dirichlet(np.full(5, 0.5), 89)
        p = 0.5 * true[:, rng.permutation(5)] + 0.5 * true
        if not soft:
            true = np.eye(5)[[rng.choice(5, p=row) for row in true]]
        found = Conformal.fit(NAMES, p[:59], true[:59]).label_set(p[59:], 0.8)
        held.append((true[59:] * found).sum(1).mean())
        sizes.append(found.sum(1).mean())
    assert 0.79 <= np.mean(held) <= 0.85 and np.mean(sizes) < 4.5


@pytest.mark.parametrize("labels", [AGES, NAMES], ids=["ages", "names"])
def test_with_too_few_rows_everything_is_given_and_said(labels: LabelSpace) -> None:
    p = np.full((5, len(labels)), 1 / len(labels))
    truth = np.full(5, 3.0) if labels.has_values else p
    found = Conformal.fit(labels, p, truth)
    cross = CrossConformal.fit(labels, p, truth, np.arange(5) % 2)
    for model, given in ((found, p), (cross, np.stack([p, p]))):
        with pytest.warns(UserWarning, match="level 0.9 needs 9 calibration rows or groups, and there are 5"):
            sets = model.interval(given, 0.9) if labels.has_values else model.label_set(given, 0.9)
        assert (sets == [0, 20]).all() if labels.has_values else sets.all()


def test_split_arguments_that_do_not_match() -> None:
    p = np.full((4, 21), 1 / 21)
    with pytest.raises(LDLError, match=r"predictions \(4, 21\) and 3 true rows do not match"):
        Conformal.fit(AGES, p, np.zeros(3))
    with pytest.raises(LDLError, match="must be finite, one a row and axis"):
        Conformal.fit(AGES, p, np.full(4, np.nan))
    with pytest.raises(LDLError, match=r"true distributions \(2,\) must be \(N, 5\)"):
        Conformal.fit(NAMES, np.eye(5)[:2], np.zeros(2))
    with pytest.raises(LDLError, match=r"groups \(3,\) must name a group of every row, \(4,\)"):
        Conformal.fit(AGES, p, np.zeros(4), np.arange(3))
    with pytest.raises(LDLError, match="take interval"):
        Conformal.fit(AGES, p, np.zeros(4)).label_set(p, 0.5)
    with pytest.raises(LDLError, match="take label_set"):
        Conformal.fit(NAMES, np.eye(5), np.eye(5)).interval(np.eye(5), 0.5)


@pytest.mark.parametrize(("labels", "wrong"), [(AGES, 0.0), (NAMES, -1.0), (AGES, np.nan)], ids=["sum", "sign", "nan"])
def test_predictions_that_are_no_distributions_are_refused(labels: LabelSpace, wrong: float) -> None:
    p = np.full((5, len(labels)), 1 / len(labels))
    truth = np.full(5, 3.0) if labels.has_values else p.copy()
    p[2] = wrong
    said = f"prediction 2 has the sum {wrong * len(labels):g} and the least entry {wrong:g}"
    with pytest.raises(LDLError, match=said):
        Conformal.fit(labels, p, truth)
    with pytest.raises(LDLError, match=said):
        CrossConformal.fit(labels, p, truth, np.arange(5))
