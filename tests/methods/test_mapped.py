"""Maps of files: read without keeping their pages, changed ones kept, scratch files without a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.errors import LDLError
from ldl.methods import mapped

ROWS = 1 << 17


def resident() -> int:
    """MB of files in this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssFile")).split()[1]) // 1024


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """32 MB in a private map, read in blocks of 1 MB."""
    monkeypatch.setattr(mapped, "BLOCK", 1 << 20)
    np.save(tmp_path / "table.npy", np.arange(ROWS * 64, dtype=np.float32).reshape(ROWS, 64))
    return np.load(tmp_path / "table.npy", mmap_mode="c")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what is mapped")
def test_pages_of_a_map_are_given_back_unless_they_were_written_to(table: np.ndarray) -> None:
    before = resident()
    whole = sum(float(block.sum(dtype=np.float64)) for _, block in mapped.blocks(table, 1 << 20))
    assert resident() - before < 8
    assert whole == float(table.sum(dtype=np.float64)) and resident() - before > 24
    mapped.release(torch.from_numpy(table))
    assert resident() - before < 8
    table[ROWS // 2, 3] = -1
    assert not mapped.may_drop(table)
    mapped.release(table)
    assert table[ROWS // 2, 3] == -1


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what is mapped")
def test_what_is_kept_is_copied_unless_it_is_mapped(table: np.ndarray) -> None:
    for rows, copied in ((torch.from_numpy(table), False), (torch.from_numpy(table.copy()), True)):
        assert (mapped.kept(rows, torch.float32).data_ptr() != rows.data_ptr()) == copied


def test_blocks_are_the_table(table: np.ndarray) -> None:
    firsts, parts = zip(*mapped.blocks(table, 100_000))
    assert len(parts) > 300 and np.array_equal(np.concatenate(parts), table)
    assert np.array_equal(np.cumsum([0, *map(len, parts)])[:-1], firsts)
    rows = np.flatnonzero(np.random.default_rng(0).random(ROWS) < 0.1)
    assert np.array_equal(mapped.take(table, rows), table[rows])
    assert len(mapped.take(table, rows[:0])) == 0


def test_large_scratch_memory_is_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mapped, "LARGE", 1 << 20)
    monkeypatch.setattr(mapped, "BLOCK", 1 << 20)
    array = mapped.scratch((3, 1 << 19), np.uint8)
    array[1] = 7
    assert mapped.may_drop(array) and not any((tmp_path / "cache/scratch").iterdir())
    mapped.release(array)
    assert array[1].all() and not array[0].any()
    with pytest.raises(LDLError, match=r"cache/scratch cannot take 2251799.8 GB .* set LDL_CACHE to another folder"):
        mapped.scratch((1 << 51,), np.uint8)
