"""Training that goes wrong says so within a step: what went wrong, where, and the likely cause; nothing is tested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor

from ldl.backbones.base import Identity
from ldl.collective import Collective
from ldl.command import main
from ldl.data.synthetic import RotatedDigits
from ldl.errors import SharedError
from ldl.heads import LDLF, Softmax
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("blank_charts")

QUIET = [
    "--model.backbone=null", "--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu",
    "--trainer.enable_model_summary=false", "--wandb.mode=disabled", "--data=TabularLDL", "--data.batch_size=8",
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("table") / "table.npz"
    np.savez(path, features=rng.normal(size=(60, 4)), labels=rng.dirichlet(np.ones(3), 60))
    return path


def _end(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    return line


@pytest.mark.parametrize(("head", "step"), [("Softmax", 2), ("LDLF", 1)])
def test_a_rate_that_is_too_high_is_named_and_no_checkpoint_is_spoilt(
    head: str, step: int, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "run"
    run = [*QUIET, f"--data.path={table}", f"--model.head={head}", f"--run_dir={place}", "--model.optimizer.lr=1e30"]
    line = _end(run, capsys)
    assert f"loss is nan at step {step} (epoch 0), on rows " in line and "a learning rate of 1e+30" in line
    assert "lower model.optimizer.lr" in line and len(line) < 500
    assert not place.exists()


class _Spoils(Softmax):
    """The loss of one step is not finite, and nothing else."""

    step = 5
    spoilt = float("nan")

    def loss(self, features: Tensor, target: Tensor, value: Tensor | None = None, **extra: Any) -> dict[str, Tensor]:
        self.seen = getattr(self, "seen", -1) + 1
        losses = super().loss(features, target, value)
        return {"loss": losses["loss"] * (self.spoilt if self.seen == self.step else 1)}


class _Steps(pl.Callback):
    begun = 0

    def on_train_batch_start(self, *args: Any) -> None:
        self.begun += 1


def _trainer(**options: Any) -> pl.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    return pl.Trainer(**{"max_epochs": 2, "enable_checkpointing": False, **quiet, **options})


@pytest.mark.parametrize("spoilt", [float("nan"), float("inf")])
def test_no_step_follows_the_one_that_went_wrong(spoilt: float) -> None:
    data, head, steps = RotatedDigits(turns=1, batch_size=100), _Spoils(), _Steps()
    head.spoilt = spoilt
    trainer = _trainer(callbacks=[steps], max_epochs=1)
    task = Task(head, Identity(flatten=True), optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.125))
    with pytest.raises(SharedError) as error:
        trainer.fit(task, datamodule=data)
    order = np.random.default_rng([0, 0]).permutation(len(data.split.train))[500:503]
    rows = ", ".join(str(row) for row in data.split.train[order])
    assert f"loss is {spoilt:g} at step 5 (epoch 0), on rows {rows}, " in str(error.value)
    assert "and 90 more of the data: training diverges at a learning rate of 0.125" in str(error.value)
    # The next batch was at hand, and was not trained.
    assert head.seen == 5 and steps.begun == 7


def test_no_checkpoint_is_written_of_a_step_that_went_wrong(tmp_path: Path) -> None:
    every = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=2, save_top_k=-1)
    trainer = _trainer(callbacks=[every], enable_checkpointing=True)
    with pytest.raises(SharedError, match="loss is nan at step 5 "):
        trainer.fit(Task(_Spoils(), Identity(flatten=True)), datamodule=RotatedDigits(turns=1, batch_size=100))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step=2.ckpt", "step=4.ckpt"]


@pytest.mark.parametrize(("val_fraction", "last"), [(0.1, 14), (0.0, 16)])
def test_last_step_is_looked_at_before_the_validation_and_without_one(val_fraction: float, last: int) -> None:
    data, head = RotatedDigits(turns=1, batch_size=100, val_fraction=val_fraction), _Spoils()
    head.step = last
    trainer = _trainer(max_epochs=1, num_sanity_val_steps=0)
    with pytest.raises(SharedError, match=f"loss is nan at step {last} "):
        trainer.fit(Task(head, Identity(flatten=True)), datamodule=data)
    assert len(data.train_dataloader()) == last + 1 and "val_kl" not in trainer.callback_metrics


def test_leaves_that_are_not_numbers_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def update(self: LDLF, collective: Collective) -> None:
        self.leaves[0, 0, 0] = torch.nan
        self._observed = 0

    monkeypatch.setattr(LDLF, "update", update)
    task = Task(LDLF(trees=2, depth=3, batches=4), Identity(flatten=True))
    with pytest.raises(SharedError, match=r"LDLF\.update gives NaN; lower model\.optimizer\.lr"):
        _trainer(num_sanity_val_steps=0).fit(task, datamodule=RotatedDigits(turns=1, batch_size=100))
    assert int(task.head.steps) == 4


def test_prediction_that_is_no_distribution_ends_every_stage() -> None:
    data = RotatedDigits(turns=1, batch_size=2000)
    task, trainer = Task(Softmax(), Identity(flatten=True)), _trainer(max_epochs=1, limit_train_batches=1)
    trainer.fit(task, datamodule=data)
    task.head.logits[0].bias.data[3] = torch.nan
    for call, rows in ((trainer.validate, data.split.val), (trainer.test, data.split.test), (trainer.predict, None)):
        row = (data.split.test if rows is None else rows)[0]
        with pytest.raises(SharedError, match=rf"row {row} of the data: smallest entry nan, sum nan; its learned"):
            call(task, datamodule=data)
