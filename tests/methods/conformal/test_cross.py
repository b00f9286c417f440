"""Cross-conformal prediction: CV+ against loops, weights, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal, CrossConformal
from ldl.methods.conformal.scores import label_scores, line_intervals, line_scores

AGES = LabelSpace.ordinal(range(0, 21), "years")


NAMES = LabelSpace.nominal(list("abcde"))


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
    assert abs(plain.threshold(0.3) - found.threshold(0.3)) > 1e-3
    # Groups without weights have other scores, see test_units.py.
    assert grouped or np.abs(plain.weight - found.weight).max() > 0.1
    cross = CrossConformal.fit(labels, p, truth, group % 3, groups, weight).weight
    np.testing.assert_allclose(cross, own if labels.has_values else own[:, None] * mass)
