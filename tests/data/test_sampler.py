"""Batches dealt to several processes are those of one process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ldl.data.sampler import DealtBatchSampler, Draw


def batches(
    size: int, batch_size: int, world: int, epoch: int = 0, done: int = 0, seed: int = 3, shuffle: bool = True
) -> list[list[list[Draw]]]:
    """By rank, by batch: the draws of one epoch, from batch ``done`` on."""
    return [
        list(DealtBatchSampler(size, batch_size, shuffle, seed, rank, world, lambda: (epoch, done)))
        for rank in range(world)
    ]


@pytest.mark.parametrize(("size", "batch_size"), [(20, 5), (21, 5), (22, 8), (3, 8), (7, 1), (1, 4)])
@pytest.mark.parametrize("world", [1, 2, 3, 5])
@pytest.mark.parametrize("shuffle", [True, False])
def test_ranks_share_the_batches_of_one_process(size: int, batch_size: int, world: int, shuffle: bool) -> None:
    whole = batches(size, batch_size, 1, shuffle=shuffle)[0]
    ranks = batches(size, batch_size, world, shuffle=shuffle)
    for rank in ranks:
        assert len(rank) == len(whole) == len(DealtBatchSampler(size, batch_size, shuffle))
    for number, batch in enumerate(whole):
        assert len({len(rank[number]) for rank in ranks}) == 1
        for row, draw in enumerate(batch):
            # The whole draw: row, weight and the seed of its augmentation.
            assert ranks[row % world][number][row // world] == draw
        real = [draw for rank in ranks for draw in rank[number] if draw.weight == 1]
        padding = [draw for rank in ranks for draw in rank[number] if draw.weight == 0]
        assert len(real) == len(batch)
        assert len(padding) == -len(batch) % world
        assert all(0 <= draw.row < size for draw in padding)
    assert sorted(draw.row for batch in whole for draw in batch) == list(range(size))
    assert [len(batch) for batch in whole[:-1]] == [batch_size] * (len(whole) - 1)


def test_padding_comes_last() -> None:
    for rank in batches(10, 4, 3):
        for batch in rank:
            weights = [draw.weight for draw in batch]
            assert weights == sorted(weights, reverse=True)


def test_without_shuffling_rows_come_in_order_at_every_epoch() -> None:
    for epoch in (0, 4):
        (rank,) = batches(10, 4, 1, epoch, shuffle=False)
        assert [[draw.row for draw in batch] for batch in rank] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_order_and_seeds_differ_by_epoch_and_by_seed_and_repeat() -> None:
    first = batches(50, 10, 1)
    assert first == batches(50, 10, 1)
    for other in (batches(50, 10, 1, epoch=1), batches(50, 10, 1, seed=4)):
        flat, changed = ([draw for batch in run[0] for draw in batch] for run in (first, other))
        assert [draw.row for draw in flat] != [draw.row for draw in changed]
        by_row = {draw.row: draw.seed for draw in flat}
        assert sum(by_row[draw.row] == draw.seed for draw in changed) == 0


def test_rows_of_an_epoch_have_seeds_of_their_own() -> None:
    (rank,) = batches(500, 100, 1)
    assert len({draw.seed for batch in rank for draw in batch}) == 500


def test_the_epoch_is_asked_for_at_every_pass() -> None:
    now = [0]
    sampler = DealtBatchSampler(30, 10, True, position=lambda: (now[0], 0))
    first = list(sampler)
    now[0] = 1
    second = list(sampler)
    now[0] = 0
    assert first != second
    assert list(sampler) == first


@pytest.mark.parametrize("world", [1, 3])
def test_a_resumed_epoch_goes_on_where_it_stopped(world: int) -> None:
    whole, rest = (batches(22, 5, world, epoch=2, done=done) for done in (0, 3))
    assert [rank[3:] for rank in whole] == rest
    assert batches(22, 5, world, epoch=2, done=5) == [[]] * world


def test_evaluation_always_starts_at_the_first_batch() -> None:
    assert batches(10, 4, 1, epoch=2, done=2, shuffle=False) == batches(10, 4, 1, shuffle=False)


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
        assert sent == drawn[-1] and sent.coming is None


def test_no_rows_no_batches() -> None:
    assert batches(0, 4, 2) == [[], []]
