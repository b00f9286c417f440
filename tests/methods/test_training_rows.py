"""Training rows block by block, and large scratch memory as a file without a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldl.errors import LDLError
from ldl.methods import training_rows


def test_blocks_are_the_table() -> None:
    table = np.arange(6000, dtype=np.float32).reshape(1000, 6)
    firsts, parts = zip(*training_rows.blocks(table, 500))
    assert len(parts) == 50 and np.array_equal(np.concatenate(parts), table)
    assert np.array_equal(np.cumsum([0, *map(len, parts)])[:-1], firsts)
    rows = np.flatnonzero(np.random.default_rng(0).random(1000) < 0.1)
    assert np.array_equal(training_rows.take(table, rows), table[rows])
    assert len(training_rows.take(table, rows[:0])) == 0


def test_large_scratch_memory_is_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(training_rows, "SCRATCH_FILE_BYTES", 1 << 20)
    array = training_rows.scratch((3, 1 << 19), np.uint8)
    array[1] = 7
    assert isinstance(array.base, np.memmap) and not any((tmp_path / "cache/scratch").iterdir())
    assert array[1].all() and not array[0].any()
    with pytest.raises(LDLError, match=r"cache/scratch cannot take 2251799.8 GB .* set LDL_CACHE to another folder"):
        training_rows.scratch((1 << 51,), np.uint8)
