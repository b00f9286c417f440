"""Rows of a file that are read many batches ahead are the rows that each batch asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.batch import Batch
from ldl.data import TabularLDL, column, row_file
from ldl.data.column import Made
from ldl.data.row_file import RowFile

RNG = np.random.default_rng(5)
SIZE, FEATURES = 400, 6


@pytest.fixture
def table(tmp_path: Path) -> Path:
    np.save(tmp_path / "features.npy", RNG.normal(size=(SIZE, FEATURES)).astype(np.float32))
    np.save(tmp_path / "labels.npy", RNG.dirichlet(np.ones(3), SIZE).astype(np.float32))
    return tmp_path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows every read of a file asks for."""
    found: list[int] = []
    read = RowFile.__getitem__

    def counted(self: RowFile, rows: slice | np.ndarray) -> np.ndarray:
        if not isinstance(rows, slice):
            found.append(len(rows))
        return read(self, rows)

    monkeypatch.setattr(RowFile, "__getitem__", counted)
    return found


def batches_of(table: Path, **options: int) -> tuple[TabularLDL, Iterator[Batch]]:
    data = TabularLDL(str(table), batch_size=32, val_fraction=0.2, **options)
    data.setup()
    return data, iter(data.train_dataloader())


@pytest.mark.parametrize("ahead", [1, 5000, 2**26])
def test_batches_are_those_from_memory(table: Path, ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column, "AHEAD", ahead)
    whole = list(batches_of(table)[1])
    data, batches = batches_of(table, in_memory=0)
    seen = []
    for number, batch in enumerate(batches):
        seen.append(batch)
        if number == 3:  # a look at the validation part in the middle of an epoch
            for other in data.val_dataloader():
                assert torch.equal(other["input"], data.scaled[other["index"]])
    assert len(seen) == len(whole) > 8
    for batch, known in zip(seen, whole):
        assert all(torch.equal(batch[name], known[name]) for name in known)


def test_a_file_is_read_once_for_many_batches(table: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column, "AHEAD", 5 * 32 * FEATURES * 4)
    data, batches = batches_of(table, in_memory=0)
    train = len(data.split.train)
    reads.clear()
    assert len(list(batches)) == -(-train // 32)
    # Five batches of features at a time, ten of the labels, which are half as wide.
    assert sorted(reads) == sorted([160] * (train // 160) + [train % 160] * (train % 160 > 0) + [train])


def test_other_rows_than_those_foreseen_are_read_themselves(table: Path) -> None:
    data, _ = batches_of(table, in_memory=0)
    assert isinstance(data.scaled, Made)
    data.scaled.foresee(lambda count: np.arange(min(count, SIZE)))
    rows = torch.tensor([5, 3, 399])
    assert torch.equal(data.scaled[rows], torch.cat([data.scaled[rows[place : place + 1]] for place in range(3)]))


def test_rows_are_mapped_part_by_part_or_read_one_by_one(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RowFile.open(table / "features.npy")
    whole = np.load(table / "features.npy")
    for rows in (RNG.integers(0, SIZE, 900), RNG.permutation(SIZE)[:7], np.array([SIZE - 1]), np.empty(0, np.int64)):
        for scattered, mapped in ((1, 2**26), (2**14, 2**26), (1, 24 * 50), (1, 24), (1, 1)):
            monkeypatch.setattr(row_file, "SCATTERED", scattered)
            monkeypatch.setattr(row_file, "MAPPED", mapped)
            np.testing.assert_array_equal(file[rows], whole[rows])
