"""The maximum entropy model against gradient descent in float64."""

from __future__ import annotations

import pytest
import torch

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import MaxEnt
from ldl.labels import LabelSpace
from ldl.metrics.functional import kl
from ldl.testing import check_head

LABELS = LabelSpace.nominal(list("abcd"))


def _problem() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(80, 3, generator=generator, dtype=torch.float64)
    noise = torch.randn(80, 4, generator=generator, dtype=torch.float64)
    return features, (features @ torch.randn(3, 4, generator=generator, dtype=torch.float64) + noise).softmax(1)


def _fitted(**options: float) -> MaxEnt:
    head = MaxEnt(**options)  # type: ignore[arg-type]
    head.build(3, LABELS)
    head.double().fit(*_problem(), Collective())
    return head


def test_contract() -> None:
    check_head(lambda: MaxEnt(iterations=50))


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


def test_more_iterations_are_never_worse_in_training_and_more_l2_is() -> None:
    features, target = _problem()
    losses = [float(kl(_fitted(iterations=n)(features), target).mean()) for n in (1, 2, 4, 8, 100)]
    assert losses == sorted(losses, reverse=True)
    losses = [float(kl(_fitted(l2=l2)(features), target).mean()) for l2 in (0.0, 0.01, 0.1, 1.0)]
    assert losses == sorted(losses)


@pytest.mark.parametrize("options", [{"l2": -1.0}, {"iterations": 0}, {"tolerance": -1e-3}])
def test_wrong_options_are_refused(options: dict[str, float]) -> None:
    (name,) = options
    with pytest.raises(LDLError, match=f"MaxEnt.{name} {options[name]} must be at least"):
        MaxEnt(**options).build(3, LABELS)  # type: ignore[arg-type]
