"""The maximum entropy model against gradient descent in float64."""

from __future__ import annotations

from functools import partial
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from sklearn.model_selection import KFold

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import MaxEnt
from ldl.labels import LabelSpace
from ldl.methods import max_ent
from ldl.methods.max_ent import PENALTIES, along_features, choose_l2, fit_max_ent, principal_axes
from ldl.metrics.functional import kl
from ldl.testing import check_head

LABELS = LabelSpace.nominal(list("abcd"))


def _problem() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(80, 3, generator=generator, dtype=torch.float64)
    noise = torch.randn(80, 4, generator=generator, dtype=torch.float64)
    return features, (features @ torch.randn(3, 4, generator=generator, dtype=torch.float64) + noise).softmax(1)


def _fitted(**options: float | None) -> MaxEnt:
    head = MaxEnt(**options)  # type: ignore[arg-type]
    head.build(3, LABELS)
    head.double().fit(*_problem(), Collective())
    return head


def test_contract() -> None:
    check_head(lambda: MaxEnt(iterations=50))
    check_head(lambda: MaxEnt(l2=0.0, iterations=50))


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_minimum_is_that_of_gradient_descent(l2: float) -> None:
    features, target = _problem()
    weight, bias = (torch.zeros(*shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (4,)))
    for _ in range(3000):
        output = (features @ weight.T + bias).log_softmax(1)
        loss = -(target * output).sum(1).mean() + l2 / 2 * weight.square().sum()
        for parameter, gradient in zip((weight, bias), torch.autograd.grad(loss, (weight, bias))):
            parameter.data -= 0.5 * gradient
    expected = (features @ weight.T + bias).softmax(1).detach()
    torch.testing.assert_close(_fitted(l2=l2, tolerance=1e-9)(features), expected, atol=1e-5, rtol=0)


def test_half_precision_keeps_the_weights() -> None:
    features, target = (part.float() for part in _problem())
    head = MaxEnt(l2=0.0)
    head.build(3, LABELS)
    head.fit(features, target, Collective())
    rounded = features.bfloat16()
    expected = head(rounded.float())
    found = head.bfloat16()(rounded)
    assert found.dtype == torch.float32 and torch.equal(found, expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("l2", [0.1, None])
def test_constant_features_give_the_mean_distribution(l2: float | None) -> None:
    head, (_, target) = MaxEnt(l2), _problem()
    head.build(3, LABELS)
    head.fit(torch.ones(80, 3), target, Collective())
    expected = target.mean(0).float().expand(80, 4)
    torch.testing.assert_close(head(torch.ones(80, 3)), expected, atol=1e-4, rtol=0)


def test_more_iterations_are_never_worse_in_training_and_more_l2_is() -> None:
    features, target = _problem()
    losses = [float(kl(_fitted(l2=0.0, iterations=n)(features), target).mean()) for n in (1, 2, 4, 8, 100)]
    assert losses == sorted(losses, reverse=True)
    losses = [float(kl(_fitted(l2=l2)(features), target).mean()) for l2 in (0.0, 0.01, 0.1, 1.0)]
    assert losses == sorted(losses)


@pytest.mark.parametrize("options", [{"l2": -1.0}, {"iterations": 0}, {"tolerance": -1e-3}])
def test_wrong_options_are_refused(options: dict[str, float]) -> None:
    (name,) = options
    with pytest.raises(LDLError, match=f"MaxEnt.{name} {options[name]} must be at least"):
        MaxEnt(**options).build(3, LABELS)  # type: ignore[arg-type]


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.2), (2, 2.0), (4, 1.0), (0, 4.0)])
def test_the_penalty_is_that_with_the_lowest_divergence_on_rows_left_out(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(60, 12))
    target = softmax(rows[:, :4] + noise * rng.normal(size=(60, 4)), axis=1)
    lost = []
    for l2 in PENALTIES:
        found = 0.0
        for train, test in KFold(5, shuffle=True, random_state=0).split(rows):
            head = MaxEnt(l2=l2, tolerance=1e-7)
            head.build(12, LABELS)
            head.double().fit(torch.from_numpy(rows[train]), torch.from_numpy(target[train]), Collective())
            found += float(kl(head(torch.from_numpy(rows[test])), torch.from_numpy(target[test])).sum())
        lost.append(found)
    best = PENALTIES[int(np.argmin(lost))]
    assert best not in (PENALTIES[0], PENALTIES[-1]) or noise == 4.0
    assert choose_l2(rows, target, 500, 1e-7) == best
    chosen, fixed = MaxEnt(), MaxEnt(l2=best)
    for head in (chosen, fixed):
        head.build(12, LABELS)
        head.double().fit(torch.from_numpy(rows), torch.from_numpy(target), Collective())
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
    heads = [MaxEnt(iterations=100) for _ in range(2)]
    for head, known in zip(heads, (None, torch.from_numpy(group))):
        head.build(20, LABELS)
        head.fit(torch.from_numpy(rows).float(), torch.from_numpy(target).float(), Collective(), group=known)
    assert heads[0].summary()["l2"] < 0.01 and heads[1].summary()["l2"] >= 1


def test_what_cannot_be_left_out_gets_the_strongest_penalty() -> None:
    rows, target = np.ones((3, 2)), np.full((3, 4), 0.25)
    assert choose_l2(rows[:1], target[:1], 10, 1e-5) == PENALTIES[0]
    assert choose_l2(rows, target, 10, 1e-5, np.zeros(3, int)) == PENALTIES[0]
    assert choose_l2(rows, target, 10, 1e-5) in PENALTIES


def test_no_weaker_penalty_is_tried_where_one_is_clearly_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [1.0, 1.004, 1.009, 0.9, 0.907, 0.908, 0.95, 0.1]
    tried = []

    def fit(rows: np.ndarray, target: np.ndarray, l2: float, *rest: object) -> np.ndarray:
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


@pytest.mark.parametrize(("count", "width"), [(60, 8), (12, 30), (30, 30)])
@pytest.mark.parametrize("l2", [1.0, 0.03])
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
    assert choose_l2(turned, target, 2000, 1e-7, variance=variance) == choose_l2(rows, target, 2000, 1e-7)


@pytest.mark.parametrize("mass", [1.0, 5.0])
def test_principal_axes_take_a_fraction_of_the_steps(mass: float) -> None:
    rows, target = _entangled(400, 20, seed=0)
    target *= mass
    axes = principal_axes(rows)
    steps = {"plain": 0, "turned": 0}

    def count(name: str) -> None:
        steps[name] += 1

    def loss(both: np.ndarray) -> float:
        logs = log_softmax(rows @ both[:, :-1].T + both[:, -1], axis=1)
        return float(0.005 * (both[:, :-1] ** 2).sum() - (target * logs).sum() / len(rows))

    plain = fit_max_ent(rows, target, 0.01, 5000, 1e-5, step=lambda: count("plain"))
    fit = partial(fit_max_ent, axes.transform(rows), target, 0.01, variance=axes.explained_variance_)
    turned = along_features(fit(iterations=5000, tolerance=1e-5, step=lambda: count("turned")), axes)
    minimum = along_features(fit(iterations=20_000, tolerance=1e-10), axes)
    np.testing.assert_allclose(turned[:, :-1], minimum[:, :-1], atol=1e-3)
    # Where the plain one stops on its long way there differs from machine to machine, unless it goes on.
    further = fit_max_ent(rows, target, 0.01, 20_000, 1e-7)
    np.testing.assert_allclose(turned[:, :-1], further[:, :-1], atol=5e-3)
    assert loss(minimum) <= loss(turned) < loss(plain) < loss(minimum) + 1e-5
    assert steps["turned"] < steps["plain"] / 5


def test_whoever_starts_at_the_minimum_stays_there() -> None:
    rows, target = _entangled(60, 8, seed=1)
    axes = principal_axes(rows)
    steps: list[None] = []
    fit = partial(fit_max_ent, axes.transform(rows), target, 0.03, 500, variance=axes.explained_variance_)
    found = fit(tolerance=1e-8)
    np.testing.assert_array_equal(fit(tolerance=1e-5, start=found, step=lambda: steps.append(None)), found)
    assert not steps


def test_penalties_are_compared_in_the_same_units(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, target = _entangled(60, 8, seed=1)
    axes, spy = principal_axes(rows), MagicMock(wraps=fit_max_ent)
    monkeypatch.setattr(max_ent, "fit_max_ent", spy)
    choose_l2(axes.transform(rows), target, 500, 1e-5, variance=axes.explained_variance_)
    assert len(spy.call_args_list) >= 5 and all(call.args[5] is axes.explained_variance_ for call in spy.call_args_list)


def test_without_a_penalty_features_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are published of runs that were stopped early, which ends elsewhere in other units."""
    spy = MagicMock(wraps=fit_max_ent)
    monkeypatch.setattr("ldl.heads.max_ent.fit_max_ent", spy)
    features, target = _problem()
    early = _fitted(l2=0.0, iterations=3)
    plain = fit_max_ent(features.numpy(), target.numpy(), 0.0, 3, 1e-5)
    np.testing.assert_array_equal(early.weight.numpy(), plain[:, :-1])
    _fitted(l2=0.1)
    assert [call.args[5] is None for call in spy.call_args_list] == [True, False]


def test_one_row_is_fitted_too() -> None:
    head = MaxEnt(l2=0.1)
    head.build(3, LABELS)
    head.fit(torch.ones(1, 3), torch.tensor([[0.1, 0.2, 0.3, 0.4]]), Collective())
    torch.testing.assert_close(head(torch.ones(1, 3)), torch.tensor([[0.1, 0.2, 0.3, 0.4]]), atol=1e-3, rtol=0)
