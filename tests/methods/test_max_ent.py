"""Fits of maximum entropy: principal axes, and the choice of the penalty."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from sklearn.model_selection import KFold

from ldl.collective import Collective
from ldl.heads import MaxEnt
from ldl.labels import LabelSpace
from ldl.methods import max_ent
from ldl.methods.max_ent import PENALTIES, along_features, choose_l2, fit_max_ent, principal_axes
from ldl.methods.rows import Rows

LABELS = LabelSpace.nominal(list("abcd"))


def test_the_penalty_is_that_with_the_lowest_divergence_on_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, 12))
    target = softmax(rows[:, :4] + 2 * rng.normal(size=(60, 4)), axis=1)
    lost = dict.fromkeys(PENALTIES[:8], 0.0)
    for l2 in lost:
        for train, test in KFold(5, shuffle=True, random_state=0).split(rows):
            both = fit_max_ent(rows[train], target[train], l2, 500, 1e-5)
            logs = log_softmax(rows[test] @ both[:, :-1].T + both[:, -1], axis=1)
            lost[l2] -= float((target[test] * logs).sum())
    best = min(lost, key=lambda l2: lost[l2])
    assert best not in (PENALTIES[0], PENALTIES[7])
    assert choose_l2(rows, target, 500, 1e-5) == best
    chosen, fixed = MaxEnt(), MaxEnt(l2=best)
    for head in (chosen, fixed):
        head.build(12, LABELS)
        head.double().fit(Rows(torch.from_numpy(rows), torch.from_numpy(target)), Collective())
    assert torch.equal(chosen.weight, fixed.weight) and torch.equal(chosen.bias, fixed.bias)
    assert chosen.summary() == {"l2": pytest.approx(best)} and fixed.summary() == {}
    again = MaxEnt()
    again.build(12, LABELS)
    again.load_state_dict(chosen.state_dict())
    assert again.summary() == {"l2": pytest.approx(best)}


def test_groups_are_left_out_as_a_whole() -> None:
    """Every group has features of its own and a distribution by chance: who has seen it knows it, nobody else can."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), 6)
    rows, target = rng.normal(size=(12, 20))[group], softmax(2 * rng.normal(size=(12, 4)), axis=1)[group]
    assert choose_l2(rows, target, 500, 1e-5) < 0.01
    assert choose_l2(rows, target, 500, 1e-5, group) >= 1
    head = MaxEnt(iterations=100)
    head.build(20, LABELS)
    columns = (torch.from_numpy(part).float() for part in (rows, target))
    head.fit(Rows(*columns, group=torch.from_numpy(group)), Collective())
    assert head.summary()["l2"] >= 1


def test_what_cannot_be_left_out_gets_the_strongest_penalty() -> None:
    rows, target = np.ones((3, 2)), np.full((3, 4), 0.25)
    assert choose_l2(rows[:1], target[:1], 10, 1e-5) == PENALTIES[0]
    assert choose_l2(rows, target, 10, 1e-5, np.zeros(3, int)) == PENALTIES[0]
    assert choose_l2(rows, target, 10, 1e-5) in PENALTIES


def test_no_weaker_penalty_is_tried_where_one_is_clearly_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [1.0, 1.004, 1.009, 0.9, 0.907, 0.908, 0.95, 0.1]
    tried = []

    def fit(rows: np.ndarray, target: np.ndarray, l2: float, *rest: object, **more: object) -> np.ndarray:
        """Biases that have the loss of the penalty's place."""
        tried.append(l2)
        likelihood = np.exp(-losses[PENALTIES.index(l2)])
        return np.array([[0.0, np.log(likelihood)], [0.0, np.log(1 - likelihood)]])

    monkeypatch.setattr(max_ent, "fit_max_ent", fit)
    assert choose_l2(np.ones((20, 1)), np.tile([1.0, 0.0], (20, 1)), 500, 1e-5) == PENALTIES[3]
    assert tried == [l2 for l2 in PENALTIES[:7] for _ in range(5)]


def _entangled(count: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of very different variance that vary together, one of them constant, and labels, one without mass."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, width)) * np.geomspace(1, 0.01, width) @ rng.normal(size=(width, width)) + 3
    rows[:, 0] = 7
    target = softmax(rows[:, :4] + rng.normal(size=(count, 4)), axis=1) * [1, 1, 0, 1]
    return rows, target / target.sum(1, keepdims=True)


@pytest.mark.parametrize(("count", "width", "l2"), [(60, 8, 0.03), (12, 30, 1.0)])
def test_principal_axes_leave_the_minimum_where_it_is(count: int, width: int, l2: float) -> None:
    rows, target = _entangled(count, width, seed=count)
    axes = principal_axes(rows)
    turned, variance = axes.transform(rows), axes.explained_variance_
    plain = fit_max_ent(rows, target, l2, 20_000, 1e-9)
    start = np.random.default_rng(0).normal(size=(4, turned.shape[1] + 1))
    for first in (None, start):
        found = along_features(fit_max_ent(turned, target, l2, 20_000, 1e-9, variance, first), axes)
        np.testing.assert_allclose(found[:, :-1], plain[:, :-1], atol=1e-5)
        # Of the label without mass the bias falls for ever.
        scores = (rows @ both[:, :-1].T + both[:, -1] for both in (found, plain))
        np.testing.assert_allclose(*(softmax(score, axis=1) for score in scores), atol=1e-6)


def test_principal_axes_take_a_fraction_of_the_steps() -> None:
    rows, target = _entangled(100, 12, seed=0)
    axes = principal_axes(rows)
    steps: dict[str, list[int]] = {"plain": [], "turned": []}
    fit_max_ent(rows, target, 0.01, 5000, 1e-5, step=lambda: steps["plain"].append(1))
    turned = axes.transform(rows), target, 0.01, 5000, 1e-5, axes.explained_variance_
    fit_max_ent(*turned, step=lambda: steps["turned"].append(1))
    assert len(steps["turned"]) < len(steps["plain"]) / 5


def test_whoever_starts_at_the_minimum_stays_there() -> None:
    rows, target = _entangled(60, 8, seed=1)
    axes = principal_axes(rows)
    steps: list[None] = []
    fit = partial(fit_max_ent, axes.transform(rows), target, 0.03, 500, variance=axes.explained_variance_)
    found = fit(tolerance=1e-8)
    np.testing.assert_array_equal(fit(tolerance=1e-5, start=found, step=lambda: steps.append(None)), found)
    assert not steps
