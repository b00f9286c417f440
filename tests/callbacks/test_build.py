"""Lightning's callbacks find a built model in their ``setup``, and callbacks without an effect raise LDLError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import (
    BackboneFinetuning,
    BatchSizeFinder,
    EarlyStopping,
    EMAWeightAveraging,
    LearningRateFinder,
    ModelCheckpoint,
    ModelPruning,
    StochasticWeightAveraging,
)
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ldl.backbones import Identity, Timm
from ldl.callbacks import MovingAverage
from ldl.data import RotatedDigits
from ldl.errors import LDLError
from ldl.heads import LDLF, MeanPredictor, Softmax
from ldl.task import Task

QUIET: dict[str, Any] = {
    "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
    "enable_model_summary": False, "limit_train_batches": 2, "limit_val_batches": 1, "limit_test_batches": 1,
    "limit_predict_batches": 1, "num_sanity_val_steps": 0,
}  # fmt: skip
TINY = {"trees": 2, "depth": 3, "outputs": 8, "batches": 2}


class Setup(pl.Callback):
    """The names of the parameters at ``setup``, and those that each epoch changes."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.changed: list[set[str]] = []

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self.found = [name for name, _ in pl_module.named_parameters()]

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.before = {name: value.detach().clone() for name, value in pl_module.named_parameters()}

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        changed = {name for name, value in pl_module.named_parameters() if not torch.equal(value, self.before[name])}
        self.changed.append(changed)


def digits() -> RotatedDigits:
    return RotatedDigits(turns=1, batch_size=32)


def small(head: Any = None, **timm: Any) -> Task:
    pl.seed_everything(0, verbose=False)
    backbone = Timm("resnet10t", pretrained=False, **timm)
    return Task(head or Softmax(), backbone, lambda parameters: torch.optim.SGD(parameters, lr=0.05))


@pytest.mark.parametrize("stage", ["fit", "predict"])
def test_callbacks_find_the_parameters_in_setup(stage: str) -> None:
    seen, task = Setup(), Task(Softmax(), Identity(flatten=True))
    trainer = pl.Trainer(callbacks=[seen], max_epochs=1, **QUIET)
    getattr(trainer, stage)(task, datamodule=digits())
    assert seen.found == [name for name, _ in task.named_parameters()] and "head.logits.0.weight" in seen.found
    assert [type(each).__name__ for each in trainer.callbacks].count("Build") == 1


def test_a_backbone_is_frozen_until_its_epoch() -> None:
    seen, task = Setup(), small()
    pl.Trainer(callbacks=[BackboneFinetuning(1, train_bn=False), seen], max_epochs=2, **QUIET).fit(task, digits())
    # Lightning lets the scales and shifts of normalisation learn.
    kernels = {name for name, value in task.backbone.named_parameters("backbone") if value.ndim > 1}
    first, second = (each & kernels for each in seen.changed)
    assert not first and len(second) > 10


def test_stochastic_averages_are_those_of_the_weights() -> None:
    starts: list[Tensor] = []

    class Starts(pl.Callback):
        def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
            starts.append(torch.cat([value.detach().flatten() for value in pl_module.parameters()]))

    task = Task(Softmax(), Identity(flatten=True), lambda parameters: torch.optim.SGD(parameters, lr=0.5))
    average = StochasticWeightAveraging(swa_lrs=0.5, swa_epoch_start=2)
    pl.Trainer(callbacks=[Starts(), average], max_epochs=4, **QUIET).fit(task, digits())
    after = torch.cat([value.detach().flatten() for value in task.parameters()])
    torch.testing.assert_close(after, torch.stack(starts[1:]).mean(0))
    assert not torch.allclose(after, starts[-1])
    assert task.calibration is None  # of weights that are none of these


@pytest.mark.parametrize(
    ("callback", "head", "options", "message"),
    [
        *(
            (callback, MeanPredictor, {}, f"{type(callback).__name__}: MeanPredictor is fitted in one go")
            for callback in (
                BackboneFinetuning(), BatchSizeFinder(), ModelPruning("l1_unstructured"), MovingAverage(),
            )
        ),
        (LearningRateFinder(), lambda: LDLF(**TINY), {}, "LearningRateFinder: .* LDLF does not learn without its"),
        (EMAWeightAveraging(), lambda: LDLF(**TINY), {}, "average the integers head.units; set its use_buffers false"),
        (BackboneFinetuning(), Softmax, {"freeze": True}, "would not learn; set model.backbone.freeze false"),
    ],
)  # fmt: skip
def test_a_callback_without_effect_is_refused(callback: Any, head: Any, options: Any, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        task = small(head(), **options) if options else Task(head(), Identity(flatten=True))
        pl.Trainer(callbacks=[callback], max_epochs=1, **QUIET).fit(task, digits())


@pytest.mark.parametrize(
    ("callback", "scheduler", "message"),
    [
        (EarlyStopping("val_cosine"), None, "EarlyStopping.mode min takes the worst val_cosine .* set its mode to max"),
        (ModelCheckpoint(monitor="val_kl", mode="max"), None, "ModelCheckpoint.mode max takes the worst val_kl"),
        (EarlyStopping("train_loss", mode="max"), None, "EarlyStopping.mode max takes the worst train_loss"),
        (None, ReduceLROnPlateau, "ReduceLROnPlateau.mode min takes the worst val_intersection"),
    ],
)
def test_a_metric_that_is_watched_in_the_wrong_direction_is_refused(
    callback: Any, scheduler: Any, message: str
) -> None:
    options = {**QUIET, "enable_checkpointing": True, "max_epochs": 1}
    task = Task(Softmax(), Identity(flatten=True), lr_scheduler=scheduler, lr_monitor="val_intersection")
    with pytest.raises(LDLError, match=message):
        pl.Trainer(callbacks=[callback] if callback else [], **options).fit(task, digits())


@pytest.mark.parametrize("callback", [EarlyStopping("val_nope"), ModelCheckpoint(monitor="val_nope", every_n_epochs=9)])
def test_a_metric_that_is_not_measured_is_refused(callback: Any, tmp_path: Path) -> None:
    options = {**QUIET, "enable_checkpointing": True, "max_epochs": 1, "default_root_dir": tmp_path}
    with pytest.raises(LDLError, match=f"{type(callback).__name__}.monitor 'val_nope' must be one of .*; did you mean"):
        pl.Trainer(callbacks=[callback], **options).fit(Task(Softmax(), Identity(flatten=True)), digits())
