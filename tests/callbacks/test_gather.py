"""Rows that heads are fitted on come from files where they are many: the same rows, the same fit, nothing left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.callbacks.fit_head import of_all, put_together
from ldl.collective import Collective
from ldl.data import TabularLDL, storage
from ldl.heads import MaxEnt
from ldl.task import Task

GENERATOR = torch.Generator().manual_seed(0)
ROWS = {
    "features": torch.randn(23, 4, generator=GENERATOR),
    "target": torch.rand(23, 3, generator=GENERATOR),
    "group": torch.arange(23) % 5,
}


def parts(size: int = 5) -> list[dict[str, Tensor]]:
    return [{name: column[start : start + size] for name, column in ROWS.items()} for start in range(0, 23, size)]


@pytest.mark.parametrize("in_memory", [0.0, 1.0])
def test_all_rows_in_order_and_no_file_left(tmp_path: Path, in_memory: float) -> None:
    columns = put_together(iter(parts()), 23, in_memory, tmp_path / "scratch")
    assert {name: column.dtype for name, column in columns.items()} == {n: c.dtype for n, c in ROWS.items()}
    assert all(torch.equal(columns[name], column) for name, column in ROWS.items())
    assert list(tmp_path.rglob("*.npy")) == [] and (tmp_path / "scratch").is_dir() == (in_memory == 0)
    columns["features"] += 1  # a head may write: nobody else has them


def test_rows_of_two_processes_come_back_in_order() -> None:
    class Two(Collective):
        world_size = 2

        def gather(self, tensor: Tensor) -> list[Tensor]:
            whole = next(
                column for column in ROWS.values() if column.ndim == tensor.ndim and column.dtype == tensor.dtype
            )
            return [tensor, whole[1::2]]

    share = {name: ROWS[name][::2] for name in ("features", "group")}
    assert all(torch.equal(column, ROWS[name]) for name, column in of_all(share, Two()).items())


def test_a_table_on_disk_trains_the_same_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "BLOCK_BYTES", 8 * 4 * 50)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 4)).astype(np.float32)
    np.save(tmp_path / "features.npy", features)
    np.save(tmp_path / "labels.npy", (mass := np.exp(features[:, :3])) / mass.sum(1, keepdims=True))

    def trained(in_memory: float) -> dict[str, Any]:
        pl.seed_everything(0, verbose=False)
        data = TabularLDL(str(tmp_path), batch_size=32, val_fraction=0, in_memory=in_memory)
        trainer = pl.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, use_distributed_sampler=False,
        )  # fmt: skip
        task = Task(MaxEnt(iterations=3))
        trainer.fit(task, datamodule=data)
        (measured,) = trainer.test(task, datamodule=data, verbose=False)
        return {**task.state_dict(), **{name: torch.tensor(figure) for name, figure in measured.items()}}

    memory, disk = trained(1024), trained(0)
    assert memory.keys() == disk.keys() and all(torch.equal(memory[name], disk[name]) for name in memory)
    assert not list((tmp_path / "cache").rglob("*.npy"))
