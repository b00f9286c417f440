"""The maximum entropy model: its minimum, principal axes, and the choice of the penalty."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from ldl.collective import Collective
from ldl.heads import MaxEnt
from ldl.labels import LabelSpace
from ldl.methods.max_ent import fit_max_ent
from ldl.methods.rows import Rows
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
    head.double().fit(Rows(*_problem()), Collective())
    return head


def test_contract() -> None:
    check_head(lambda: MaxEnt(l2=0.01, iterations=50))


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_gradient_vanishes_at_the_minimum(l2: float) -> None:
    """The loss is convex, so its only minimum is where the gradient vanishes."""
    features, target = _problem()
    head = _fitted(l2=l2, tolerance=1e-9)
    weight, bias = (part.clone().requires_grad_() for part in (head.weight, head.bias))
    loss = -(target * (features @ weight.T + bias).log_softmax(1)).sum(1).mean() + l2 / 2 * weight.square().sum()
    for gradient in torch.autograd.grad(loss, (weight, bias)):
        assert float(gradient.abs().max()) < 1e-7


def test_half_precision_keeps_the_weights() -> None:
    features, target = (part.float() for part in _problem())
    head = MaxEnt(l2=0.0)
    head.build(3, LABELS)
    head.fit(Rows(features, target), Collective())
    rounded = features.bfloat16()
    expected = head(rounded.float())
    found = head.bfloat16()(rounded)
    assert found.dtype == torch.float32 and torch.equal(found, expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("l2", [0.1, None])
def test_constant_features_give_the_mean_distribution(l2: float | None) -> None:
    head, (_, target) = MaxEnt(l2), _problem()
    head.build(3, LABELS)
    head.fit(Rows(torch.ones(80, 3), target), Collective())
    expected = target.mean(0).float().expand(80, 4)
    torch.testing.assert_close(head(torch.ones(80, 3)), expected, atol=1e-4, rtol=0)


def test_more_iterations_are_never_worse_in_training_and_more_l2_is() -> None:
    features, target = _problem()
    losses = [float(kl(_fitted(l2=0.0, iterations=n)(features), target).mean()) for n in (1, 2, 4, 8, 100)]
    assert losses == sorted(losses, reverse=True)
    losses = [float(kl(_fitted(l2=l2)(features), target).mean()) for l2 in (0.0, 0.01, 0.1, 1.0)]
    assert losses == sorted(losses)


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
    head.fit(Rows(torch.ones(1, 3), torch.tensor([[0.1, 0.2, 0.3, 0.4]])), Collective())
    torch.testing.assert_close(head(torch.ones(1, 3)), torch.tensor([[0.1, 0.2, 0.3, 0.4]]), atol=1e-3, rtol=0)
