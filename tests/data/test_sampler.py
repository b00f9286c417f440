"""Batches dealt to several processes are those of one process."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from hypothesis import given
from hypothesis import strategies as st

from ldl.data import RotatedDigits, TabularLDL
from ldl.data.sampler import DealtBatchSampler, Draw, balanced_weights, draw
from ldl.errors import LDLError
from ldl.labels import LabelSpace


def batches(
    size: int, batch_size: int, world: int, epoch: int = 0, done: int = 0, seed: int = 3, shuffle: bool = True
) -> list[list[list[Draw]]]:
    """By rank, by batch: the draws of one epoch, from batch ``done`` on."""
    return [
        [
            list(batch)
            for batch in DealtBatchSampler(size, batch_size, shuffle, seed, rank, world, lambda: (epoch, done))
        ]
        for rank in range(world)
    ]


@pytest.mark.parametrize(("size", "batch_size"), [(20, 5), (22, 8), (3, 8), (7, 1)])
@pytest.mark.parametrize("world", [1, 2, 5])
@pytest.mark.parametrize("shuffle", [True, False])
def test_ranks_share_the_batches_of_one_process(size: int, batch_size: int, world: int, shuffle: bool) -> None:
    whole = batches(size, batch_size, 1, shuffle=shuffle)[0]
    ranks = batches(size, batch_size, world, shuffle=shuffle)
    for rank in ranks:
        assert len(rank) == len(whole) == len(DealtBatchSampler(size, batch_size, shuffle))
    for number, batch in enumerate(whole):
        assert len({len(rank[number]) for rank in ranks}) == 1
        for row, drawn in enumerate(batch):
            # The whole draw: row, weight and the seed of its augmentation.
            assert ranks[row % world][number][row // world] == drawn
        real = [drawn for rank in ranks for drawn in rank[number] if drawn.weight == 1]
        padding = [drawn for rank in ranks for drawn in rank[number] if drawn.weight == 0]
        assert len(real) == len(batch)
        assert len(padding) == -len(batch) % world
        assert all(0 <= drawn.row < size for drawn in padding)
    assert sorted(drawn.row for batch in whole for drawn in batch) == list(range(size))
    assert [len(batch) for batch in whole[:-1]] == [batch_size] * (len(whole) - 1)


def test_order_and_seeds_differ_by_epoch_and_by_seed_and_repeat() -> None:
    first = batches(50, 10, 1)
    assert first == batches(50, 10, 1)
    for other in (batches(50, 10, 1, epoch=1), batches(50, 10, 1, seed=4)):
        flat, changed = ([drawn for batch in run[0] for drawn in batch] for run in (first, other))
        assert [drawn.row for drawn in flat] != [drawn.row for drawn in changed]
        by_row = {drawn.row: drawn.seed for drawn in flat}
        assert sum(by_row[drawn.row] == drawn.seed for drawn in changed) == 0


@pytest.mark.parametrize("world", [1, 3])
def test_a_resumed_epoch_goes_on_where_it_stopped(world: int) -> None:
    whole, rest = (batches(22, 5, world, epoch=2, done=done) for done in (0, 3))
    assert [rank[3:] for rank in whole] == rest
    assert batches(22, 5, world, epoch=2, done=5) == [[]] * world


def test_evaluation_always_starts_at_the_first_batch() -> None:
    data = RotatedDigits(turns=1)
    data.setup()
    data.trainer = pl.Trainer(logger=False, accelerator="cpu")
    progress = data.trainer.fit_loop.epoch_loop.batch_progress
    progress.current.processed = 2
    for loader, first in ((data.train_dataloader(), 2), (data.val_dataloader(), 0)):
        sampler = loader.batch_sampler
        assert len(list(sampler)) == len(sampler) - first


@pytest.mark.parametrize("world", [1, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_batch_tells_the_rows_of_those_after_it(world: int, shuffle: bool) -> None:
    for rank in range(world):
        drawn = list(DealtBatchSampler(22, 6, shuffle, 3, rank, world, lambda: (1, 0)))
        each = len(drawn[0])
        for number, batch in enumerate(drawn):
            assert batch.coming is not None
            for count, batches_told in ((1, 1), (each, 1), (2 * each + 1, 2), (1000, 4)):
                told = np.concatenate([later.rows for later in drawn[number : number + batches_told]])
                np.testing.assert_array_equal(batch.coming(count), told)
        sent = pickle.loads(pickle.dumps(drawn[-1]))
        assert list(sent) == list(drawn[-1]) and sent.coming is None


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


@pytest.mark.parametrize(("power", "width"), [(0.3, 2.0), (1.0, 0.5)])
def test_weights_are_those_of_smoothed_labels(power: float, width: float) -> None:
    target = torch.distributions.Dirichlet(torch.full((10,), 0.3)).sample((50,))
    rows = np.arange(0, 50, 2)
    found = balanced_weights(target, rows, AGES, power, width)
    np.testing.assert_allclose(found, _reference(target[::2].double().numpy(), power, width), rtol=1e-6)


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


def test_balanced_batches_are_the_same_for_any_number_of_processes() -> None:
    often = np.array([3.0] * 5 + [0.5] * 20)
    whole, *parts = (
        [
            list(map(list, DealtBatchSampler(25, 8, True, 3, rank, world, lambda: (1, 0), often)))
            for rank in range(world)
        ]
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
