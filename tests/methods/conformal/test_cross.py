"""CV+ against loops over rows, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.conformal import CrossConformal
from ldl.methods.conformal.line import line_intervals, line_scores
from ldl.methods.conformal.sets import label_scores

LINE, NAMES = LabelSpace.ordinal([0, 1, 2, 4, 7]), LabelSpace.nominal(list("abcde"))


def draw(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Out-of-fold predictions, values, folds of whole groups, groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, rows // 3, rows)
    return rng.dirichlet(np.ones(5), rows), rng.uniform(0, 7, rows), groups % 3, groups


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("level", [0.5, 0.8])
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
    found = CrossConformal.fit(NAMES, p, true, fold).label_set(new, 0.8)
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
    held = CrossConformal.fit(NAMES, p, true, np.arange(20) % 2).label_set(np.stack([p[:1], p[:1]]), 0.8)
    assert held.tolist() == [[True, True, False, False, False]]


def test_coverage_of_new_rows() -> None:
    rng = np.random.default_rng(0)
    held = []
    axis = np.arange(0.0, 11)
    labels = LabelSpace.ordinal(axis)
    for _ in range(100):
        x, noise = rng.uniform(2, 8, 65), rng.normal(size=65)
        y = (x + noise).clip(0, 10)
        fold, offsets = np.arange(45) % 3, rng.normal(scale=0.3, size=3)

        def predict(middle: np.ndarray) -> np.ndarray:
            p = np.exp(-2 * (axis - middle[:, None]) ** 2)
            return p / p.sum(1, keepdims=True)

        found = CrossConformal.fit(labels, predict(x[:45] + offsets[fold]), y[:45], fold)
        ends = found.interval(np.stack([predict(x[45:] + offset) for offset in offsets]), 0.8)
        held.append(((ends[:, 0] <= y[45:]) & (y[45:] <= ends[:, 1])).mean())
    assert 0.78 <= np.mean(held) <= 0.88


def test_what_does_not_fit_is_refused() -> None:
    p, value, fold, groups = draw(30, 0)
    with pytest.raises(LDLError, match="a group is in two folds"):
        CrossConformal.fit(LINE, p, value, np.arange(30) % 3, np.arange(30) // 2)
    with pytest.raises(LDLError, match=r"groups \(29,\) must name a group of every row, \(30,\)"):
        CrossConformal.fit(LINE, p, value, fold, groups[1:])
    with pytest.raises(LDLError, match=r"fold \(29,\) must name a fold of every row, \(30,\)"):
        CrossConformal.fit(LINE, p, value, fold[1:])
    for wrong in (fold - 1, fold / 2, fold.astype(str)):
        with pytest.raises(LDLError, match="fold must number the models from 0, in whole numbers"):
            CrossConformal.fit(LINE, p, value, wrong)
    known, count = CrossConformal.fit(LINE, p, value, fold + 1), fold.max() + 1
    with pytest.raises(LDLError, match=f"predictions of {count} models, and rows of fold {count}; number folds from 0"):
        known.interval(p[None].repeat(count, 0), 0.5)
    with pytest.raises(LDLError, match="predictions of 4 models, and rows of fold 4"):
        CrossConformal.fit(NAMES, np.eye(5), np.eye(5), np.arange(5)).label_set(np.eye(5)[None].repeat(4, 0), 0.5)
    with pytest.raises(LDLError, match="take label_set"):
        CrossConformal.fit(NAMES, np.eye(5), np.eye(5), np.arange(5)).interval(np.eye(5)[None].repeat(5, 0), 0.5)
