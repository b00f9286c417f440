"""A fit ends with the weights and the calibration of its best epoch, also in its last checkpoint and when resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from ldl.callbacks import BestEpoch
from ldl.data import TabularLDL
from ldl.heads import LDLF, Softmax
from ldl.task import Task


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table without signal, which a network overfits: the first epochs are the best."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("noise") / "noise.npz"
    np.savez(path, features=rng.normal(size=(120, 20)), labels=rng.dirichlet(np.ones(3), 120))
    return path


def data_of(path: Path, val_fraction: float = 0.3) -> TabularLDL:
    return TabularLDL(path=str(path), batch_size=16, val_fraction=val_fraction, folds=3)


def trainer_of(folder: Path, epochs: int, *more: pl.Callback) -> tuple[pl.Trainer, BestEpoch]:
    best = BestEpoch()
    last = ModelCheckpoint(dirpath=folder, filename="last", save_on_train_epoch_end=True, enable_version_counter=False)
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return pl.Trainer(max_epochs=epochs, accelerator="cpu", callbacks=[best, last, *more], **quiet), best


def task_of(head: Any = None) -> Task:
    pl.seed_everything(0)
    return Task(head or Softmax(hidden=[64]), optimizer=lambda groups: torch.optim.AdamW(groups, lr=3e-2))


class Curve(pl.Callback):
    """Keeps the validation KL of every epoch, and a copy of the weights."""

    def __init__(self) -> None:
        self.kl: list[float] = []
        self.weights: list[dict[str, torch.Tensor]] = []

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.kl.append(float(trainer.callback_metrics["val_kl"]))
            self.weights.append({name: held.clone() for name, held in pl_module.state_dict().items()})


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(held, second[name]) for name, held in first.items())


@pytest.mark.parametrize(
    "make", [None, lambda: LDLF(trees=2, depth=3, outputs=None, batches=2)], ids=["Softmax", "LDLF"]
)
def test_the_fit_ends_with_the_best_epoch(make: Any, noise: Path, tmp_path: Path) -> None:
    task, curve = task_of(make and make()), Curve()
    trainer, best = trainer_of(tmp_path, 8, curve)
    trainer.fit(task, datamodule=data_of(noise))
    first = int(np.argmin(curve.kl))
    assert first < 7 and curve.kl[-1] > curve.kl[first]
    assert (best.kl, best.epoch) == (curve.kl[first], first + 1)
    assert same(task.state_dict(), curve.weights[first])
    assert trainer.validate(task, datamodule=data_of(noise), verbose=False)[0]["val_kl"] == pytest.approx(
        best.kl, rel=1e-6
    )


def test_the_last_checkpoint_has_its_weights_and_calibration(noise: Path, tmp_path: Path) -> None:
    task = task_of()
    trainer, best = trainer_of(tmp_path, 8)
    trainer.fit(task, datamodule=data_of(noise))
    loaded = Task.load_from_checkpoint(tmp_path / "last.ckpt")
    assert same(loaded.state_dict(), task.state_dict())
    assert task.calibration is not None and loaded.calibration is not None and best.epoch < 8
    for ours, theirs in zip(task.calibration.scores, loaded.calibration.scores):
        np.testing.assert_array_equal(ours.score, theirs.score)


def test_a_resumed_fit_finds_the_same_epoch(noise: Path, tmp_path: Path) -> None:
    """Interrupted after epoch 5 of 8, past the best; no random draws differ, since batches are seeded by number."""
    whole = task_of()
    trainer, best = trainer_of(tmp_path / "whole", 8)
    trainer.fit(whole, datamodule=data_of(noise))

    class Stop(pl.Callback):
        def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
            if trainer.current_epoch == 5:
                raise InterruptedError

    trainer, _ = trainer_of(tmp_path / "part", 8, Stop())
    with pytest.raises(InterruptedError):
        trainer.fit(task_of(), datamodule=data_of(noise))
    part = task_of()
    trainer, resumed = trainer_of(tmp_path / "part", 8)
    trainer.fit(part, datamodule=data_of(noise), ckpt_path=tmp_path / "part" / "last.ckpt", weights_only=True)
    assert (resumed.kl, resumed.epoch) == (best.kl, best.epoch)
    assert same(part.state_dict(), whole.state_dict())


def test_without_a_validation_set_the_last_weights_stay(noise: Path, tmp_path: Path) -> None:
    with_it, without = task_of(), task_of()
    trainer_of(tmp_path, 2)[0].fit(with_it, datamodule=data_of(noise, 0.0))
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    pl.seed_everything(0)
    pl.Trainer(max_epochs=2, accelerator="cpu", enable_checkpointing=False, **quiet).fit(
        without, datamodule=data_of(noise, 0.0)
    )
    assert same(with_it.state_dict(), without.state_dict())


def test_a_second_fit_forgets_the_first(noise: Path, tmp_path: Path) -> None:
    trainer, best = trainer_of(tmp_path, 3)
    trainer.fit(task_of(), datamodule=data_of(noise))
    best.kl = 0.0
    trainer.fit_loop.epoch_progress.reset()
    trainer.fit(task_of(), datamodule=data_of(noise))
    assert best.kl > 0
