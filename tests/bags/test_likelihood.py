"""The likelihood of bags: Table 2, its weights, and bags that are surely wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import logsigmoid

from ldl.bags.layout import PackedBags
from ldl.bags.likelihood import POOLING_CODES, Model, likelihood
from ldl.bags.pooling import Pooling, pool_logits

KINDS: tuple[Pooling, ...] = ("lse", "gm", "nor", "isr", "lse_score")
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
    loss = likelihood(
        scores, PackedBags(NO_ROWS, starts, positive, negative), Model(POOLING_CODES[kind], r, apart), weights
    )
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
        likelihood(scores, PackedBags(NO_ROWS, starts, *mass), Model(POOLING_CODES[kind], 4.0, False), weights)
        np.testing.assert_allclose(weights.reshape(6, groups), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("h", [-400.0, -30.0, 30.0, 400.0])
def test_wrong_beyond_doubt_is_neither_hidden_nor_nan(kind: str, h: float) -> None:
    """Probabilities far below the smallest number: the likelihood still says how far."""
    scores, weights = np.full((8, 1), h), np.empty((8, 1))
    mass = np.array([float(h < 0)]), np.array([float(h > 0)])
    loss = likelihood(
        scores, PackedBags(NO_ROWS, np.array([0, 8]), *mass), Model(POOLING_CODES[kind], 5.0, False), weights
    )
    assert loss == pytest.approx(2 * abs(h) * (8 if kind == "nor" and h > 0 else 1), abs=5)
    assert np.isfinite(weights).all()
