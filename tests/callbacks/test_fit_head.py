"""A trainer that has fitted a head in one go: what it does next."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
import torch.distributed as dist
from torch import Tensor

from ldl.backbones.base import Backbone, Identity
from ldl.callbacks import Compile, FitHead, LeafUpdate
from ldl.callbacks.fit_head import _extract
from ldl.collective import Collective, TorchCollective
from ldl.data import RotatedDigits
from ldl.errors import LDLError, SharedError
from ldl.head import Head
from ldl.heads import LDLF, MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.task import Task

QUIET = {
    "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
    "enable_checkpointing": False, "num_sanity_val_steps": 0,
}  # fmt: skip


class Bright(Backbone):
    """The brightness at every pixel."""

    gives_maps = True

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        return 1

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.mean(1).unsqueeze(-1)


def _extract_sizes(rank: int, rendezvous: str, sizes: list[list[tuple[int, int]]]) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    task = Task(MeanPredictor(), Bright())
    task.build(LabelSpace.nominal(["no", "yes"]), (3, 4, 6))
    batches = [
        {"input": torch.ones(1, 3, *size), "target": torch.full((1, *size, 2), 0.5), "weight": torch.ones(1)}
        for size in sizes[rank]
    ]
    parts = _extract(pl.Trainer(**QUIET), task, batches, TorchCollective())  # type: ignore[arg-type]
    with pytest.raises(SharedError, match=r"MeanPredictor .* several sizes, such as \(4, 6, 1\) and \(6, 4, 1\)"):
        list(parts)
    dist.destroy_process_group()


def test_maps_of_several_sizes_are_refused_by_all_processes(tmp_path: Path) -> None:
    sizes = [[(4, 6), (4, 6)], [(4, 6), (6, 4)]]
    args = (str(tmp_path / "rendezvous"), sizes)
    torch.multiprocessing.start_processes(_extract_sizes, args, nprocs=2, start_method="fork")


def _fit(trainer: pl.Trainer, head: Head) -> None:
    trainer.fit(Task(head, Identity(flatten=True)), datamodule=RotatedDigits(turns=1, batch_size=600))


class Refuses(MeanPredictor):
    def fit(self, rows: Rows, collective: Collective) -> None:
        raise LDLError("not these")


def test_a_trainer_is_left_as_it_was() -> None:
    trainer = pl.Trainer(max_epochs=2, limit_train_batches=0.9, **QUIET)  # type: ignore[arg-type]
    _fit(trainer, MeanPredictor())
    assert trainer.max_epochs == 2 and trainer.limit_train_batches == 0.9
    with pytest.raises(LDLError, match="not these"):
        _fit(trainer, Refuses())
    assert trainer.max_epochs == 2 and trainer.limit_train_batches == 0.9


def test_the_next_head_is_driven_by_its_own_callbacks() -> None:
    trainer = pl.Trainer(max_epochs=4, limit_train_batches=1, **QUIET)  # type: ignore[arg-type]
    for head, own in ((MeanPredictor(), {FitHead}), (LDLF(trees=1, depth=2), {LeafUpdate}), (Softmax(), set())):
        _fit(trainer, head)
        assert {type(each) for each in trainer.callbacks} & {FitHead, LeafUpdate, Compile} == own
