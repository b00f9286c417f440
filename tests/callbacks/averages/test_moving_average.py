"""The moving average of weights: its values, what is tested and kept, and a resumed run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.callbacks import MovingAverage
from ldl.data import TabularLDL
from ldl.heads import LDLF
from ldl.task import Task


class Recorder(pl.Callback):
    """The weights after each step, and a checkpoint from the middle of the last validation."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Tensor]] = []

    def on_validation_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if not trainer.sanity_checking:
            trainer.save_checkpoint(Path(trainer.default_root_dir) / "middle.ckpt")

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *args: Any) -> None:
        self.seen.append({name: value.clone() for name, value in pl_module.state_dict().items()})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "table.npz"
    np.savez(path, features=rng.normal(size=(40, 5)), labels=rng.dirichlet(np.ones(3), 40))
    return path


def trained(
    table: Path,
    epochs: int,
    recorder: Recorder,
    resume: Path | None = None,
    precision: Any = "32-true",
    average: MovingAverage | None = None,
) -> tuple[Task, Path]:
    """A task after so many epochs, and its last checkpoint."""
    pl.seed_everything(1)
    task = Task(
        LDLF(trees=2, depth=2, outputs=4, batches=2, buffer_rows=50), None, lambda p: torch.optim.SGD(p, lr=0.3)
    )
    keep = pl.callbacks.ModelCheckpoint(table.parent / f"{epochs}", save_last=True)
    trainer = pl.Trainer(
        max_epochs=epochs, callbacks=[recorder, average or MovingAverage(0.8), keep], accelerator="cpu", logger=False,
        default_root_dir=table.parent, precision=precision,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(task, datamodule=TabularLDL(path=str(table), batch_size=8), ckpt_path=resume, weights_only=True)
    return task, table.parent / f"{epochs}" / "last.ckpt"


def test_the_average_is_kept_and_a_resumed_run_goes_on_exactly(table: Path, precision: str = "64-true") -> None:
    whole = Recorder()
    task, _ = trained(table, 4, whole, precision=precision)
    average = {name: value.double() for name, value in whole.seen[0].items()}
    for steps, weights in enumerate(whole.seen[1:], 1):
        decay = min(0.8, (1 + steps) / (10 + steps))
        average = {name: decay * average[name] + (1 - decay) * weights[name].double() for name in average}
    for name, value in task.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value.double(), average[name], rtol=1e-4, atol=1e-5)
        else:
            assert torch.equal(value, whole.seen[-1][name])
    torch.testing.assert_close(task.head.leaves.sum(-1), torch.ones_like(task.head.leaves[..., 0]))

    half, rest = Recorder(), Recorder()
    _, checkpoint = trained(table, 2, half, precision=precision)
    middle, end = (torch.load(path, weights_only=True) for path in (table.parent / "middle.ckpt", checkpoint))
    for part in ("state_dict", "current_model_state"):
        torch.testing.assert_close(middle[part], end[part], rtol=0, atol=0)
    resumed, last = trained(table, 4, rest, checkpoint, precision)
    for one, other in zip([*half.seen, *rest.seen], whole.seen, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    torch.testing.assert_close(resumed.state_dict(), task.state_dict(), rtol=0, atol=0)
    loaded = Task.load_from_checkpoint(last).state_dict()
    kept = {name: value.to(loaded[name].dtype) for name, value in task.state_dict().items()}
    torch.testing.assert_close(dict(loaded), kept, rtol=0, atol=0)


def test_the_average_of_a_checkpoint_is_tested(table: Path) -> None:
    task, last = trained(table, 1, Recorder())
    task.trainer.test(task, task.trainer.datamodule, ckpt_path=last, weights_only=True, verbose=False)
    kept = torch.load(last, weights_only=True)["state_dict"]
    torch.testing.assert_close(dict(task.state_dict()), dict(kept), rtol=0, atol=0)


def test_weights_of_another_task_are_validated_and_kept(table: Path) -> None:
    """By the trainer that has fitted, which has an average of its own."""
    task, _ = trained(table, 1, Recorder())
    trainer, other = task.trainer, Task(LDLF(trees=2, depth=2, outputs=4, batches=2, buffer_rows=50))
    data = trainer.datamodule
    (expected,) = pl.Trainer(logger=False, accelerator="cpu").validate(other, data, verbose=False)
    (found,) = trainer.validate(other, data, verbose=False)
    assert found == pytest.approx(expected)
    trainer.save_checkpoint(path := table.parent / "other.ckpt")
    torch.testing.assert_close(Task.load_from_checkpoint(path).state_dict(), other.state_dict(), rtol=0, atol=0)
