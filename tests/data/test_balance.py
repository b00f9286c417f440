"""Rare labels drawn more often: the weights, the draws, and what loaders serve."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ldl.data import TabularLDL
from ldl.data.balance import balanced_weights, draw
from ldl.data.sampler import DealtBatchSampler
from ldl.errors import LDLError
from ldl.labels import LabelSpace

AGES = LabelSpace.ordinal(range(10), "years")


def _targets(counts: list[int]) -> torch.Tensor:
    return torch.eye(len(counts)).repeat_interleave(torch.tensor(counts), 0)


def _reference(target: np.ndarray, power: float, width: float) -> np.ndarray:
    """Section 3.1 of Yang et al., label by label, in float64."""
    count = target.shape[1]
    density = np.zeros(count)
    for label in range(count):
        kernel = np.exp(-((np.arange(count) - label) ** 2) / (2 * width**2))
        density[label] = (kernel * target.mean(0)).sum() / kernel.sum()
    weights = np.array([(row * density**-power).sum() for row in target])
    return weights / weights.mean()


@pytest.mark.parametrize("power", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("width", [0.5, 2.0])
def test_weights_are_those_of_smoothed_labels(power: float, width: float) -> None:
    target = torch.distributions.Dirichlet(torch.full((10,), 0.3)).sample((50,))
    rows = np.arange(0, 50, 2)
    found = balanced_weights(target, rows, AGES, power, width)
    np.testing.assert_allclose(found, _reference(target[::2].double().numpy(), power, width), rtol=1e-6)


def test_ends_of_the_labels_need_not_be_float32() -> None:
    ratings = LabelSpace.ordinal([round(0.1 * number, 1) for number in range(12, 49)])
    assert np.isfinite(balanced_weights(torch.eye(37), np.arange(37), ratings, 0.5)).all()


def test_nominal_labels_are_not_smoothed_and_become_equally_frequent() -> None:
    target = _targets([30, 6, 4])
    weights = balanced_weights(target, np.arange(40), LabelSpace.nominal(["a", "b", "c"]), 1.0)
    np.testing.assert_allclose([weights[:30].sum(), weights[30:36].sum(), weights[36:].sum()], 40 / 3)


def test_labels_of_no_row_are_no_trouble() -> None:
    assert np.isfinite(balanced_weights(_targets([3, 0, 2]), np.arange(5), LabelSpace.nominal("abc"), 1.0)).all()


@pytest.mark.parametrize("target", [torch.rand(4, 5, 5, 2), None])
def test_targets_of_pixels_are_refused(target: torch.Tensor | None) -> None:
    with pytest.raises(LDLError, match="data.balance needs a target an instance"):
        balanced_weights(target, np.arange(4), LabelSpace.nominal("ab"), 0.5)


def test_fitted_heads_are_shown_rare_rows_more_often(tmp_path: Path) -> None:
    labels = np.eye(2)[[0] * 30 + [1] * 10]
    np.savez(tmp_path / "a.npz", features=np.arange(40.0)[:, None], labels=labels)
    shown = {}
    for balance in (0.0, 1.0):
        data = TabularLDL(path=str(tmp_path / "a.npz"), balance=balance, val_fraction=0, folds=2, batch_size=64)
        data.setup()
        (batch,) = list(data.fit_dataloader())
        assert torch.all(batch["index"].diff() >= 0) and len(batch["index"]) == len(data.split.train)
        shown[balance] = batch["target"].sum(0)
        (tested,) = list(data.test_dataloader())
        assert tested["index"].tolist() == data.split.test.tolist()
    assert abs(shown[1.0][0] - shown[1.0][1]) <= 2 < abs(shown[0.0][0] - shown[0.0][1])


@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=60), st.integers(0, 2**31))
def test_draws_are_as_frequent_as_their_weights(weights: list[float], seed: int) -> None:
    often = np.array(weights) / np.mean(weights)
    drawn = draw(often, np.random.default_rng(seed))
    assert drawn.shape == (len(often),)
    counts = np.bincount(drawn, minlength=len(often))
    assert np.all(np.abs(counts - often) < 1 + 1e-6)


def test_draws_come_in_random_order_and_differ() -> None:
    often = np.array([0.2] * 50 + [1.8] * 50)
    first, second = (draw(often, np.random.default_rng(seed)) for seed in (0, 1))
    assert not np.array_equal(first, second) and np.any(np.diff(first) < 0)
    total = np.mean([np.bincount(draw(often, np.random.default_rng(s)), minlength=100) for s in range(300)], 0)
    np.testing.assert_allclose(total, often, atol=0.15)


def test_balanced_batches_are_the_same_for_any_number_of_processes() -> None:
    often = np.array([3.0] * 5 + [0.5] * 20)
    whole, *parts = (
        [list(DealtBatchSampler(25, 8, True, 3, rank, world, lambda: (1, 0), often)) for rank in range(world)]
        for world in (1, 2, 3)
    )
    for ranks in parts:
        for number, batch in enumerate(whole[0]):
            for place, drawn in enumerate(batch):
                assert ranks[place % len(ranks)][number][place // len(ranks)] == drawn
    rows = Counter(drawn.row for batch in whole[0] for drawn in batch)
    assert all(rows[row] == 3 for row in range(5))
    seeds = [drawn.seed for batch in whole[0] for drawn in batch if drawn.row == 0]
    assert len(set(seeds)) == 3


def test_a_resumed_epoch_goes_on_with_the_same_draws() -> None:
    often = np.linspace(0.1, 1.9, 30)
    whole = list(DealtBatchSampler(30, 7, True, 3, often=often))
    rest = list(DealtBatchSampler(30, 7, True, 3, position=lambda: (0, 2), often=often))
    assert rest == whole[2:]
    (coming,) = {tuple(draws.coming(100)) for draws in whole[:1] if draws.coming}
    assert list(coming) == [drawn.row for batch in whole for drawn in batch]
