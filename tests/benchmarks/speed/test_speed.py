"""What loading and heads cost, measured in small."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image

from benchmarks.speed import gpu, head_cost, large_tables, loader, machines, max_ent
from ldl.data import TabularLDL


def test_head_cost(command: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_cost, "EPOCH_STEPS", 3)
    small = ("--size", 32, "--batch", 2, "--labels", 5, "--blocks", 2, "--steps", 1, "--updates", 1, "--device", "cpu")
    text = command(head_cost, "--threads", 1, *small)
    assert all(what in text for what in ("Softmax step, ms", "LDLF step, ms", "leaf update, ms", "share of an epoch"))


def test_made_up_pictures_and_rates(tmp_path: Path) -> None:
    pictures = sorted(loader.make_pictures(tmp_path / "pictures", 12).iterdir())
    assert len(pictures) == 12 and Image.open(pictures[0]).size == (112, 112)
    calls = []
    assert loader.rate(lambda: calls.append(1), 3, 64, "cpu") > 0 and len(calls) == 3


def test_gpu_page(command: Callable[..., str], page: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_cost, "EPOCH_STEPS", 2)
    monkeypatch.setattr(gpu, "QUICK", {**gpu.QUICK, "workers": 0, "backbone": "mobilenetv2_035"})
    written = page("gpu")
    command(gpu, "--quick", "--device", "cpu", "--page", written)
    text = written.read_text()
    assert "| 32 | none | " in text and all(f"\n| {head} | " in text for head in ("Softmax", "LDLF"))


def test_large_tables_are_the_same_in_both_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "BLOCK", 70)
    tables = []
    for layout in ("npy", "parquet"):
        large_tables.make_table(tmp_path / layout, 200, layout)
        data = TabularLDL(str(tmp_path / layout), cache_dir=str(tmp_path / "cache"), in_memory=0)
        data.setup()
        tables.append(data)
    rows = torch.arange(200)
    assert torch.equal(*(data.columns["target"][rows] for data in tables))
    assert torch.equal(*(data.scaled[rows] for data in tables))


def test_memory_of_a_process_and_growth() -> None:
    memory = large_tables.memory_of(os.getpid())
    assert memory["VmHWM"] >= memory["RssAnon"] > 1000 and large_tables.memory_of(2**22) == {}
    runs = {size: large_tables.Measured(size, 2 * size * math.log(size), *[1.0] * 6) for size in (1000, 2000)}
    assert [row[6] for row in large_tables.tabulate(runs)] == ["1.00", "1.00"]


def test_max_ent_page(command: Callable[..., str], page: Callable[[str], Path], small_sets: Path) -> None:
    written = page("max_ent")
    command(max_ent, "--sets", "SJAFFE", "--rounds", 1, "--page", written)
    row = next(line for line in written.read_text().splitlines() if line.startswith("| SJAFFE | 60 x 5 x 4 | "))
    assert float(row.split(" | ")[-1].rstrip(" |")) < 1e-4


def test_machines_page(command: Callable[..., str], page: Callable[[str], Path]) -> None:
    written = page("machines")
    command(machines, "--sizes", 30, "--nodes", 5, "--rounds", 1, "--page", written)
    row = next(line for line in written.read_text().splitlines() if line.startswith("| 30 | "))
    above = float(row.split(" | ")[-1].split()[2])
    assert 0 <= above < 1e-3
