"""Coverage of split and cross-conformal prediction over draws of rows, CV+ against loops, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, CrossConformal
from ldl.methods.conformal.scores import label_scores, line_intervals, line_scores, marginals

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


def test_persons_need_their_own_calibration() -> None:
    """Of a row of a new person, where errors of a person go together: by rows it is held too rarely, not by persons."""
    rng = np.random.default_rng(0)
    rows, persons = [], []
    for _ in range(400):
        p, value, group = ages(90, rng, persons=9)
        q, true, _ = ages(1, rng)
        rows.append(covered(Conformal.fit(AGES, p, value).interval(q, 0.9), true)[0])
        persons.append(covered(Conformal.fit(AGES, p, value, group).interval(q, 0.9), true)[0])
    assert np.mean(persons) > 0.9 > 0.89 > np.mean(rows)


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


LINE, LETTERS = LabelSpace.ordinal([0, 1, 2, 4, 7]), LabelSpace.nominal(list("abcde"))


def draw(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Out-of-fold predictions, values, folds of whole groups, groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, rows // 3, rows)
    return rng.dirichlet(np.ones(5), rows), rng.uniform(0, 7, rows), groups % 3, groups


@pytest.mark.parametrize(("grouped", "level"), [(False, 0.5), (True, 0.8)])
def test_ends_are_those_of_loops(grouped: bool, level: float) -> None:
    p, value, fold, groups = draw(40, 0)
    new = np.random.default_rng(1).dirichlet(np.ones(5), (3, 6))
    axis = np.array(LINE.axes[0])
    found = CrossConformal.fit(LINE, p, value, fold, groups if grouped else None).interval(new, level)
    scores = line_scores(p, value, axis)
    weight = np.array([1 / (groups == name).sum() for name in groups]) if grouped else np.ones(40)
    units = weight.sum()
    for row in range(6):
        ends = np.stack([line_intervals(new[fold[n]][[row]], axis, scores[n])[0] for n in range(40)])
        fits = [end for end in ends[:, 1] if weight[ends[:, 1] > end].sum() + 1 <= (1 - level) * (units + 1) + 1e-9]
        assert found[row, 1] == pytest.approx(min(fits))
        fits = [end for end in ends[:, 0] if weight[ends[:, 0] < end].sum() + 1 <= (1 - level) * (units + 1) + 1e-9]
        assert found[row, 0] == pytest.approx(max(fits))


@pytest.mark.parametrize("soft", [False, True])
def test_sets_are_those_of_loops(soft: bool) -> None:
    p, _, fold, _ = draw(40, 2)
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.ones(5), 40) if soft else np.eye(5)[rng.integers(0, 5, 40)]
    new = rng.dirichlet(np.ones(5), (3, 8))
    found = CrossConformal.fit(LETTERS, p, true, fold).label_set(new, 0.8)
    scores, of_new = label_scores(p), np.stack([label_scores(part) for part in new])
    for row in range(8):
        for label in range(5):
            rules_out = sum(
                true[n, other]
                for n in range(40)
                for other in range(5)
                if scores[n, other] < of_new[fold[n], row, label]
            )
            assert found[row, label] == (rules_out < 0.8 * 41) or label == new[:, row].mean(0).argmax()


def test_rows_of_the_same_score_rule_nothing_out() -> None:
    p, true = np.tile([0.4, 0.3, 0.1, 0.1, 0.1], (20, 1)), np.eye(5)[np.ones(20, int)]
    held = CrossConformal.fit(LETTERS, p, true, np.arange(20) % 2).label_set(np.stack([p[:1], p[:1]]), 0.8)
    assert held.tolist() == [[True, True, False, False, False]]


def test_cross_arguments_that_do_not_match() -> None:
    p, value, fold, _ = draw(30, 0)
    with pytest.raises(LDLError, match="a group is in two folds"):
        CrossConformal.fit(LINE, p, value, np.arange(30) % 3, np.arange(30) // 2)
    with pytest.raises(LDLError, match=r"fold \(29,\) must name a fold of every row, \(30,\)"):
        CrossConformal.fit(LINE, p, value, fold[1:])
    for wrong in (fold - 1, fold / 2, fold.astype(str)):
        with pytest.raises(LDLError, match="fold must number the models from 0, in whole numbers"):
            CrossConformal.fit(LINE, p, value, wrong)
    known, count = CrossConformal.fit(LINE, p, value, fold + 1), fold.max() + 1
    with pytest.raises(LDLError, match=f"predictions of {count} models, and rows of fold {count}; number folds from 0"):
        known.interval(p[None].repeat(count, 0), 0.5)
    with pytest.raises(LDLError, match="predictions of 4 models, and rows of fold 4"):
        CrossConformal.fit(LETTERS, np.eye(5), np.eye(5), np.arange(5)).label_set(np.eye(5)[None].repeat(4, 0), 0.5)
    with pytest.raises(LDLError, match="take label_set"):
        CrossConformal.fit(LETTERS, np.eye(5), np.eye(5), np.arange(5)).interval(np.eye(5)[None].repeat(5, 0), 0.5)


@pytest.mark.parametrize("labels", [AGES, NAMES], ids=["values", "names"])
@pytest.mark.parametrize("grouped", [False, True])
def test_weights_are_shares_of_the_rows_in_the_miss(labels: LabelSpace, grouped: bool) -> None:
    """The share of weight beyond a threshold, against loops; copies of a row in its group give the same."""
    rng = np.random.default_rng(0)
    p, group = rng.dirichlet(np.ones(len(labels)), 60), np.arange(60) // (3 if grouped else 1)
    truth = rng.uniform(0, 20, 60) if labels.has_values else rng.dirichlet(np.ones(5), 60)
    weight = 0.1 + rng.gamma(1.0, size=60)
    groups, units = group if grouped else None, len(np.unique(group))
    size = np.bincount(group)[group]
    own = weight / size * units / (weight / size).sum()
    found = Conformal.fit(labels, p, truth, groups, weight).scores[0]
    scores = line_scores(p, truth, labels.points[:, 0].numpy())[:, None] if labels.has_values else label_scores(p)
    mass = np.ones((60, 1)) if labels.has_values else truth
    for level in (0.3, 0.8):
        fits = [
            t for t in np.unique(scores) if (own[:, None] * mass * (scores > t)).sum() + 1 <= (1 - level) * (units + 1)
        ]
        assert found.threshold(level) == pytest.approx(min(fits))
    assert found.units == units and found.weight.sum() == pytest.approx(units)
    again, plain = (Conformal.fit(labels, p, truth, groups, each).scores[0] for each in (7 * weight, None))
    np.testing.assert_allclose(again.weight, found.weight)
    assert np.abs(plain.weight - found.weight).max() > 0.1
    cross = CrossConformal.fit(labels, p, truth, group % 3, groups, weight).weight
    np.testing.assert_allclose(cross, own if labels.has_values else own[:, None] * mass)
