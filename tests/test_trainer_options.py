"""Options of the Trainer that depend on how batches are dealt mean the same as in Lightning."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import BackboneFinetuning, EMAWeightAveraging, StochasticWeightAveraging
from torch import Tensor

from ldl.backbones import Identity
from ldl.callbacks import FeatureSmoothing
from ldl.data import RotatedDigits, TabularLDL
from ldl.errors import LDLError
from ldl.heads import MeanPredictor, Softmax
from ldl.task import Task

QUIET: dict[str, Any] = {
    "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
    "num_sanity_val_steps": 0, "limit_val_batches": 0, "enable_checkpointing": False,
}  # fmt: skip


class Rows(pl.Callback):
    """The rows of each training batch."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.seen.append(batch["index"].tolist())


@pytest.fixture
def table(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "table.npz", features=rng.normal(size=(40, 5)), labels=rng.dirichlet(np.ones(3), 40))
    return str(tmp_path / "table.npz")


@pytest.mark.parametrize("balance", [0.0, 1.0])
@pytest.mark.parametrize(("overfit", "batches"), [(2, 2), (0.5, 1)])
def test_overfit_batches_gives_the_same_batches_in_every_epoch(
    table: str, overfit: Any, batches: int, balance: float
) -> None:
    rows, data = Rows(), TabularLDL(path=table, batch_size=8, balance=balance, val_fraction=0.4)
    pl.Trainer(max_epochs=3, overfit_batches=overfit, callbacks=[rows], **QUIET).fit(Task(Softmax()), data)
    first = data.split.train[:16].tolist()
    assert rows.seen == [first[:8], first[8:]][:batches] * 3


def test_a_resumed_run_overfits_on_the_rest_of_the_epoch(table: str, tmp_path: Path) -> None:
    options = {
        **QUIET,
        "max_epochs": 3,
        "overfit_batches": 3,
        "enable_checkpointing": True,
        "default_root_dir": tmp_path,
    }
    whole, rest = Rows(), Rows()
    keep = pl.callbacks.ModelCheckpoint(tmp_path, every_n_train_steps=4, save_top_k=-1, filename="{step}")
    pl.Trainer(callbacks=[whole, keep], **options).fit(Task(Softmax()), TabularLDL(path=table, batch_size=8))
    pl.Trainer(callbacks=[rest], **options).fit(
        Task(Softmax()), TabularLDL(path=table, batch_size=8), ckpt_path=tmp_path / "step=4.ckpt", weights_only=True
    )
    assert rest.seen == whole.seen[4:]


class Normed(Identity):
    """Normalises the features of a batch."""

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        self.norm = torch.nn.BatchNorm1d(input_shape[0])
        return super().build(input_shape, load_weights)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.norm(inputs)


@pytest.mark.parametrize(("batch_size", "batches", "counted"), [(12, 3, 3), (31, 2, 1), (1, 32, 0)])
def test_a_batch_of_one_row_is_normalised(table: str, batch_size: int, batches: int, counted: int) -> None:
    """By the running statistics, which it leaves as they were."""
    task, trainer = Task(Softmax(), Normed()), pl.Trainer(max_epochs=1, **QUIET)
    trainer.fit(task, datamodule=TabularLDL(path=table, batch_size=batch_size))
    norm = task.backbone.norm
    assert (trainer.global_step, int(norm.num_batches_tracked)) == (batches, counted)
    assert norm.training == task.training and not norm._forward_hooks


def test_a_fitted_head_says_that_limits_do_not_limit_it() -> None:
    trainer = pl.Trainer(max_epochs=1, overfit_batches=2, **QUIET)
    with pytest.warns(UserWarning, match="MeanPredictor is fitted on the whole training set: .* 2 does not limit it"):
        trainer.fit(Task(MeanPredictor(), Identity(flatten=True)), RotatedDigits(turns=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"check_val_every_n_epoch": 3}, "check_val_every_n_epoch 3 is more than max_epochs 2"),
        ({"check_val_every_n_epoch": None, "val_check_interval": 9}, "val_check_interval 9 is more than the 8 batches"),
    ],
)
def test_a_validation_beyond_the_run_is_reported(table: str, options: dict[str, Any], message: str) -> None:
    trainer = pl.Trainer(max_epochs=2, **{**QUIET, **options, "limit_val_batches": 1})
    with pytest.warns(UserWarning, match=f"nothing is validated: {message}"):
        trainer.fit(Task(Softmax()), TabularLDL(path=table, batch_size=8))


@pytest.mark.parametrize(
    ("callback", "option"),
    [
        (StochasticWeightAveraging(0.1, swa_epoch_start=3), "swa_epoch_start"),
        (EMAWeightAveraging(update_starting_at_epoch=2), "update_starting_at_epoch"),
        (BackboneFinetuning(2), "unfreeze_backbone_at_epoch"),
        (FeatureSmoothing(start=2), "start"),
    ],
)
def test_a_callback_that_begins_beyond_the_run_is_refused(table: str, callback: Any, option: str) -> None:
    with pytest.raises(LDLError, match=f"{option} lies beyond the run of 2 epochs; lower it"):
        pl.Trainer(max_epochs=2, callbacks=[callback], **QUIET).fit(Task(Softmax()), TabularLDL(path=table))


@pytest.mark.parametrize(("kind", "option"), [("LinearLR", "total_iters"), ("StepLR", "step_size")])
def test_a_scheduler_that_is_longer_than_the_run_is_reported(table: str, kind: str, option: str) -> None:
    make = partial(getattr(torch.optim.lr_scheduler, kind), **{option: 3})
    with pytest.warns(UserWarning, match=f"{kind} has {option} 3, and training has 2 epochs; lower it"):
        pl.Trainer(max_epochs=2, **QUIET).fit(Task(Softmax(), lr_scheduler=make), TabularLDL(path=table))
