"""MIL pooling and the likelihood of bags: Tables 1 and 2, bounds, both ends of the scale, and gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from some_bags import gm, isr, nor
from torch import Tensor
from torch.nn.functional import logsigmoid

from ldl.bags.layout import Bags
from ldl.bags.likelihood import CODES, Model, likelihood
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


NO_ROWS = np.empty((0, 0), np.float32)
"""The likelihood asks for scores alone."""


def _padded(scores: np.ndarray, starts: np.ndarray) -> tuple[Tensor, Tensor]:
    """h as a leaf (B, J, K) with missing instances at a value that must not matter, and which exist."""
    counts = np.diff(starts)
    h = torch.full((len(counts), counts.max(), scores.shape[1]), 7.0, dtype=torch.float64)
    exists = torch.arange(int(counts.max())) < torch.tensor(counts)[:, None]
    h[exists] = torch.tensor(scores)
    return h.requires_grad_(), exists


def _loss(
    h: Tensor, exists: Tensor, positive: np.ndarray, negative: np.ndarray, kind: Pooling, r: float, apart: bool
) -> Tensor:
    mask = exists[..., None].expand_as(h)
    log_not, log_p = pool_logits(2 * h.flatten(1), kind, r, mask.flatten(1))
    if apart:
        log_not = torch.where(mask, logsigmoid(-2 * h), 0.0).sum((1, 2))
    return -(torch.tensor(positive) * log_p + torch.tensor(negative) * log_not).sum()


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 2**31), st.sampled_from(KINDS), st.sampled_from([1.0, 2.5, 20.0, 1000.0]), st.booleans(),
    st.integers(1, 3), st.sampled_from([0.1, 1.0, 8.0]),
)  # fmt: skip
@example(11268, "lse", 1000.0, False, 1, 1.0)  # all 1 - p of a bag between 36 / r and 50 / r
def test_weights_are_the_negative_gradient(
    seed: int, kind: Pooling, r: float, apart: bool, groups: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], rng.integers(1, 8, 12).cumsum()])
    scores = spread * rng.normal(size=(starts[-1], groups)) + rng.normal()
    positive, negative = rng.random((2, 12)) * rng.integers(0, 2, (2, 12))
    weights = np.empty_like(scores)
    loss = likelihood(scores, Bags(NO_ROWS, starts, positive, negative), Model(CODES[kind], r, apart), weights)
    h, exists = _padded(scores, starts)
    expected = _loss(h, exists, positive, negative, kind, r, apart)
    (gradient,) = torch.autograd.grad(expected, h)
    assert loss == pytest.approx(float(expected.detach()), rel=1e-9)
    np.testing.assert_allclose(weights, -gradient[exists].numpy(), atol=1e-6, rtol=1e-6)
    assert (gradient[~exists] == 0).all()


def _table_2(p: np.ndarray, kind: str, r: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights of one negative and one positive row of K probabilities, as the paper prints them."""
    odds = p / (1 - p)
    if kind == "lse":
        bag = np.log(np.exp(r * p).mean()) / r
        share = np.exp(r * p) / np.exp(r * p).sum()
        return -2 * p * (1 - p) / (1 - bag) * share, 2 * p * (1 - p) / bag * share
    if kind == "gm":
        bag = (p**r).mean() ** (1 / r)
        share = (p**r - p ** (r + 1)) / (p**r).sum()
        return -2 * bag / (1 - bag) * share, 2 * share
    if kind == "nor":
        bag = 1 - (1 - p).prod()
        return -2 * p, 2 * p * (1 - bag) / bag
    if kind == "isr":
        bag = odds.sum() / (1 + odds.sum())
        return -2 * odds * bag / odds.sum(), 2 * odds * (1 - bag) / odds.sum()
    h = np.log(odds) / 2
    bag = 1 / (1 + np.exp(-2 * np.log(np.exp(r * h).mean()) / r))
    share = np.exp(r * h) / np.exp(r * h).sum()
    return -2 * bag * share, 2 * (1 - bag) * share


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("label", [0, 1])
def test_weights_are_those_of_table_2(kind: str, groups: int, label: int) -> None:
    """Bags of one with several groups (MPL), and bags with one group (MIL): the equations are the same."""
    p = np.random.default_rng(0).uniform(0.05, 0.95, (6, groups))
    mass = np.ones((2, 6)) * [[label], [1 - label]]
    expected = np.array([_table_2(row, kind, 4.0)[label] for row in p])
    for shape, starts in (((6, groups), np.arange(7)), ((6 * groups, 1), np.arange(7) * groups)):
        scores = (np.log(p / (1 - p)) / 2).reshape(shape)
        weights = np.empty_like(scores)
        likelihood(scores, Bags(NO_ROWS, starts, *mass), Model(CODES[kind], 4.0, False), weights)
        np.testing.assert_allclose(weights.reshape(6, groups), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("h", [-400.0, -30.0, 30.0, 400.0])
def test_wrong_beyond_doubt_is_neither_hidden_nor_nan(kind: str, h: float) -> None:
    """Probabilities far below the smallest number: the likelihood still says how far."""
    scores, weights = np.full((8, 1), h), np.empty((8, 1))
    mass = np.array([float(h < 0)]), np.array([float(h > 0)])
    loss = likelihood(scores, Bags(NO_ROWS, np.array([0, 8]), *mass), Model(CODES[kind], 5.0, False), weights)
    assert loss == pytest.approx(2 * abs(h) * (8 if kind == "nor" and h > 0 else 1), abs=5)
    assert np.isfinite(weights).all()
