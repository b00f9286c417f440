"""``Task.calibrate``: a temperature from the validation part, which checkpoints keep."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from checkpoints.make import Problem, sgd, train
from torch.utils.data import DataLoader

from ldl.backbones.base import Identity
from ldl.edges.pixel_features import PixelFeatures
from ldl.errors import LDLError
from ldl.heads import MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.methods.temperature import fit_temperature, temper
from ldl.metrics.functional import kl
from ldl.task import Task


class Validated(Problem):
    """The small problem with a validation part that has flatter distributions than the training part."""

    def val_dataloader(self) -> DataLoader[Any]:
        flat = self.target
        self.target = temper(flat, 3.0)
        loader = self._loader()
        self.target = flat
        return loader

    test_dataloader = val_dataloader


def _fitted(folder: Path, data: Problem, head: Any = None, **options: Any) -> tuple[pl.Trainer, Task]:
    torch.manual_seed(0)
    task = Task(head or Softmax(), Identity(), sgd, **options)
    data.build(task)
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=folder, use_distributed_sampler=False,
    )  # fmt: skip
    trainer.fit(task, datamodule=data)
    return trainer, task.eval()


@torch.no_grad()
def test_the_temperature_suits_the_validation_part(tmp_path: Path) -> None:
    data = Validated("rows")
    plain_trainer, plain = _fitted(tmp_path, data)
    trainer, task = _fitted(tmp_path, data, calibrate=True)
    raw, target = plain(data.inputs), temper(data.target, 3.0)
    assert plain.temperature == 1.0 and torch.equal(task.head(data.inputs), raw)
    assert task.temperature == pytest.approx(fit_temperature(raw, target), rel=1e-6)
    assert task.temperature > 1.2
    torch.testing.assert_close(task(data.inputs), temper(raw, task.temperature))
    measured, unchanged = trainer.callback_metrics, plain_trainer.callback_metrics
    assert measured["val_kl"] == unchanged["val_kl"]  # of the predictions as they are
    assert float(measured["temperature"]) == pytest.approx(task.temperature)
    calibrated = kl(task(data.inputs), target).mean().item()
    assert float(measured["val_kl_calibrated"]) == pytest.approx(calibrated, rel=1e-5)
    assert calibrated < 0.99 * float(measured["val_kl"])
    (tested,) = trainer.test(task, datamodule=data, verbose=False)
    assert tested["test_kl"] == pytest.approx(calibrated, rel=1e-5)


@torch.no_grad()
def test_checkpoints_keep_it(tmp_path: Path) -> None:
    data = Validated("rows")
    trainer, task = _fitted(tmp_path, data, calibrate=True)
    trainer.save_checkpoint(tmp_path / "task.ckpt")
    again = Task.load_from_checkpoint(tmp_path / "task.ckpt")
    assert again.temperature == task.temperature != 1
    torch.testing.assert_close(again(data.inputs), task(data.inputs))
    (expected,) = trainer.test(task, datamodule=data, verbose=False)
    task.temperature = 1.0
    (tested,) = trainer.test(task, datamodule=data, ckpt_path=tmp_path / "task.ckpt", weights_only=True, verbose=False)
    assert tested["test_kl"] == expected["test_kl"]


def test_training_on_without_it_forgets_it(tmp_path: Path) -> None:
    data = Validated("rows")
    trainer, task = _fitted(tmp_path, data, calibrate=True)
    assert task.temperature != 1
    task.calibrate = False
    trainer.fit(task, datamodule=data)
    assert task.temperature == 1


def test_a_fit_without_a_validation_part_forgets_it(tmp_path: Path) -> None:
    _, task = _fitted(tmp_path, Validated("rows"), calibrate=True)
    with pytest.warns(UserWarning, match="no validation to fit a temperature on"):
        train(task, Problem("rows"), 1)
    assert task.temperature == 1


def test_a_finished_run_that_is_resumed_keeps_it(tmp_path: Path) -> None:
    data = Validated("rows")
    trainer, task = _fitted(tmp_path, data, calibrate=True)
    trainer.save_checkpoint(tmp_path / "task.ckpt")
    temperature, task.temperature = task.temperature, 1.0
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "model.calibrate")
        trainer.fit(task, datamodule=data, ckpt_path=tmp_path / "task.ckpt", weights_only=True)
    assert task.temperature == temperature


def test_fitted_heads_have_one_too(tmp_path: Path) -> None:
    _, task = _fitted(tmp_path, Validated("rows"), MeanPredictor(), calibrate=True)
    assert task.temperature > 1.2


def test_without_a_validation_part_predictions_stay_and_a_line_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="no validation to fit a temperature on.*set data.val_fraction above 0"):
        _, task = _fitted(tmp_path, Problem("rows"), calibrate=True)
    assert task.temperature == 1


def test_maps_are_refused(tmp_path: Path) -> None:
    task = Task(Softmax(), PixelFeatures("test_resnet", pretrained=False), sgd, calibrate=True)
    task.build(LabelSpace.nominal(["edge", "none"]), (3, 32, 32))
    with pytest.raises(LDLError, match="model.calibrate is for one distribution an instance"):
        pl.Trainer(logger=False, accelerator="cpu", enable_checkpointing=False).fit(task, Problem("pictures"))
