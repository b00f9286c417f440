"""MIL pooling: Table 1, bounds, both ends of the scale, and gradients."""

from __future__ import annotations

import math

import pytest
import torch
from fakes.bags import gm, isr, nor
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ldl.bags.pooling import Pooling, lse, pool_logits

KINDS: tuple[Pooling, ...] = ("lse", "gm", "nor", "isr", "lse_score")


ROUNDING = 1e-9


sharpness = st.sampled_from([1.0, 2.0, 7.0, 100.0, 1e4, 1e8])


def _tensor(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12), sharpness)
def test_bounds_of_lse(values: list[float], r: float) -> None:
    pooled, top = float(lse(_tensor(values), r)), max(values)
    slack = ROUNDING * (1 + abs(top))
    assert top - math.log(len(values)) / r - slack <= pooled <= top + slack


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("r", [1.0, 300.0])
def test_logs_are_those_of_the_definition(kind: Pooling, r: float) -> None:
    logits = 3 * torch.randn(50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = torch.sigmoid(logits)
    plain = {
        "lse": lambda: lse(p, r),
        "gm": lambda: gm(p, r),
        "nor": lambda: nor(p),
        "isr": lambda: isr(p),
        "lse_score": lambda: torch.sigmoid(2 * lse(logits / 2, r)),
    }[kind]()
    log_not, log_p = pool_logits(logits, kind, r)
    torch.testing.assert_close(log_p, plain.log(), atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(log_not, (1 - plain).log(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("r", [1.0, 1e5])
def test_a_mask_is_as_if_the_rest_were_not_there(kind: Pooling, r: float) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(20, 9, generator=generator, dtype=torch.float64)
    mask = torch.rand(20, 9, generator=generator) < 0.6
    mask[0] = False
    padded = torch.where(mask, logits, torch.nan).requires_grad_()
    pooled = torch.stack(pool_logits(padded, kind, r, mask))
    for row in range(1, 20):
        alone = torch.stack(pool_logits(logits[row][mask[row]], kind, r))
        torch.testing.assert_close(pooled[:, row], alone)
    assert pooled[:, 0].tolist() == [0.0, -math.inf]
    (gradient,) = torch.autograd.grad(pooled[:, 1:].sum(), padded)
    assert gradient.isfinite().all() and (gradient[~mask] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("offset", "r"), [(-60.0, 1e6), (60.0, 1.0), (60.0, 1e6)])
def test_large_bags_keep_their_likelihood_and_gradient(kind: Pooling, offset: float, r: float) -> None:
    logits = offset + torch.randn(10_000, generator=torch.Generator().manual_seed(2))
    logits.requires_grad_()
    for log in pool_logits(logits, kind, r):
        assert log.isfinite() and log <= 0
        (gradient,) = torch.autograd.grad(log, logits, retain_graph=True)
        assert gradient.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_all_but_certain_keeps_its_digits(kind: Pooling) -> None:
    """Equal instances: all soft maxima are known in closed form, at probabilities that 1 - p would round away."""
    for logit in (-200.0, -50.0, 50.0, 200.0):
        z = torch.full((4,), logit, dtype=torch.float64)
        log_not, log_p = pool_logits(z, kind, 3.0)
        shift = {"nor": math.log(4), "isr": math.log(4)}.get(kind, 0.0)
        if logit < 0:
            assert float(log_p) == pytest.approx(logit + shift, rel=1e-12)
            assert float(log_not) == pytest.approx(-math.exp(logit + shift), rel=1e-12)
        else:
            factor = 4 if kind == "nor" else 1
            assert float(log_not) == pytest.approx(-factor * logit - (shift if kind == "isr" else 0), rel=1e-12)
