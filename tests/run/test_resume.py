"""A run that was stopped, at any moment, and resumed ends exactly as one that never stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from pytorch_lightning.plugins.io import TorchCheckpointIO
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, ReduceLROnPlateau, StepLR

from ldl.backbones.base import Identity
from ldl.checkpoint import AtomicCheckpointIO
from ldl.collective import Collective
from ldl.data.synthetic import RotatedDigits
from ldl.heads import LDLF, Softmax
from ldl.run.training import make_checkpoints
from ldl.schedule import WarmupCosine
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("blank_charts")

SLOW = pytest.mark.slow
EPOCHS = 3
BATCHES = 11
SCHEDULERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "epoch": ("epoch", lambda optimizer: StepLR(optimizer, 1, gamma=0.5)),
    "step": ("step", lambda optimizer: CosineAnnealingLR(optimizer, EPOCHS * BATCHES)),
    "warm": ("step", lambda optimizer: WarmupCosine(optimizer, 0.2)),
    "plateau": ("epoch", lambda optimizer: ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.5)),
}


def train(
    folder: Path, schedule: str, ckpt_path: Path | None = None, workers: int = 0, lr_monitor: str = "val_kl"
) -> pl.Trainer:
    """Train with every source of randomness there is; a checkpoint every 4 batches and at the end of every epoch."""
    pl.seed_everything(3, verbose=False)
    head = LDLF(
        trees=3, depth=4, outputs=10, hidden=[16], batches=7, buffer_rows=210,
        dropout=0.2, feature_dropout=0.1, tree_dropout=0.3, anneal=2.0, anneal_steps=30,
    )  # fmt: skip
    interval, scheduler = SCHEDULERS[schedule]
    optimizer: Callable[[Any], Any] = lambda groups: torch.optim.AdamW(groups, lr=0.02)  # noqa: E731
    task = Task(head, Identity(flatten=True), optimizer, scheduler, interval, lr_monitor)  # type: ignore[arg-type]
    every: dict[str, Any] = {"dirpath": folder, "save_top_k": -1, "auto_insert_metric_name": False}
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=EPOCHS, logger=False,
        enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=False, num_sanity_val_steps=0 if ckpt_path else 2,
        callbacks=[
            ModelCheckpoint(filename="step{step}", every_n_train_steps=4, **every),
            ModelCheckpoint(filename="epoch{epoch}", save_on_train_epoch_end=True, **every),
            ModelCheckpoint(filename="val{epoch}", monitor="val_kl", save_on_train_epoch_end=False, **every),
        ],
    )  # fmt: skip
    data = RotatedDigits(turns=1, folds=3, batch_size=100, num_workers=workers)
    trainer.fit(task, datamodule=data, ckpt_path=ckpt_path, weights_only=True)
    return trainer


def final_state(trainer: pl.Trainer) -> dict[str, Tensor]:
    """Weights, leaves, what the optimiser holds, the ring, the learning rate and the last metrics."""
    state = {f"weights {name}": tensor for name, tensor in trainer.lightning_module.state_dict().items()}
    optimizer = trainer.optimizers[0].state_dict()
    state["learning rate"] = torch.tensor(optimizer["param_groups"][0]["lr"])
    state.update({f"optimizer {n} {name}": t for n, entry in optimizer["state"].items() for name, t in entry.items()})
    head = trainer.lightning_module.head
    state.update({f"ring {name}": tensor for name, tensor in head.memory_state(Collective()).items()})
    state.update({f"metric {name}": value for name, value in trainer.callback_metrics.items()})
    return state


def final_weights(trainer: pl.Trainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.lightning_module.state_dict().items()}


def assert_identical(one: dict[str, Tensor], two: dict[str, Tensor]) -> None:
    assert sorted(one) == sorted(two)
    # A group without instances has NaN.
    different = [name for name in one if not torch.equal(one[name].nan_to_num(-1e30), two[name].nan_to_num(-1e30))]
    assert not different


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what ``seed_everything`` leaves in the environment."""
    monkeypatch.setenv("PL_GLOBAL_SEED", "0")
    monkeypatch.setenv("PL_SEED_WORKERS", "0")


@pytest.mark.parametrize(
    "schedule, workers, stops",
    [
        # Steps 4, 8, 16, ... lie inside an epoch of 11 batches; 44 is the end of the last.
        pytest.param("epoch", 0, ["step8", "step28", "epoch1", "val1"], marks=SLOW),
        pytest.param("step", 2, ["step20", "epoch0"], marks=SLOW),
        pytest.param("warm", 0, ["step4", "epoch1"], marks=SLOW),
        ("plateau", 0, ["step16", "epoch0"]),
    ],
)
def test_every_checkpoint_resumes_exactly(
    tmp_path: Path, seeded: None, schedule: str, workers: int, stops: list[str]
) -> None:
    unbroken = final_state(train(tmp_path / "unbroken", schedule, workers=workers))
    assert float(unbroken["learning rate"]) < 0.02
    for stop in stops:
        resumed = train(tmp_path / stop, schedule, tmp_path / "unbroken" / f"{stop}.ckpt", workers)
        assert_identical(unbroken, final_state(resumed))


def _softmax(folder: Path, resume: bool = False, callbacks: Sequence[pl.Callback] = ()) -> pl.Trainer:
    """Four epochs, of which the second is the best: then the learning rate is far too high."""
    pl.seed_everything(3, verbose=False)
    rate: Callable[[Any], Any] = lambda optimizer: LambdaLR(optimizer, lambda epoch: 1 if epoch < 2 else 300)  # noqa: E731
    data = RotatedDigits(turns=1, folds=3, batch_size=300)
    task = Task(Softmax(), Identity(flatten=True), lambda groups: torch.optim.AdamW(groups, lr=0.01), rate)
    data.setup()
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=4, logger=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[*make_checkpoints(folder, data), *callbacks],
    )  # fmt: skip
    last = folder / "checkpoints" / "last.ckpt"
    trainer.fit(task, datamodule=data, ckpt_path=last if resume else None, weights_only=True)
    return trainer


class Killed(BaseException):
    """Nothing of the run goes on."""


def test_kill_between_the_two_checkpoints_of_an_epoch_keeps_the_best(
    tmp_path: Path, seeded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _softmax(tmp_path / "unbroken")
    save, saved = TorchCheckpointIO.save_checkpoint, []

    def killed_after_the_third(*args: Any, **options: Any) -> None:
        save(*args, **options)
        saved.append(args)
        if len(saved) == 3:
            raise Killed

    monkeypatch.setattr(TorchCheckpointIO, "save_checkpoint", killed_after_the_third)
    with pytest.raises(Killed):
        _softmax(tmp_path / "killed")
    _softmax(tmp_path / "killed", resume=True)
    killed, unbroken = (
        torch.load(tmp_path / run / "checkpoints" / "best.ckpt", weights_only=True) for run in ("killed", "unbroken")
    )
    assert killed["epoch"] == unbroken["epoch"] == 1
    assert_same(killed["state_dict"], unbroken["state_dict"])


def test_run_that_was_stopped_early_stays_stopped(tmp_path: Path, seeded: None) -> None:
    stopped = _softmax(tmp_path, callbacks=[EarlyStopping("val_kl", min_delta=10, patience=1)])
    assert stopped.current_epoch == 2
    weights = final_weights(stopped)
    resumed = _softmax(tmp_path, resume=True, callbacks=[EarlyStopping("val_kl", min_delta=10, patience=1)])
    assert resumed.current_epoch == 2 and resumed.global_step == stopped.global_step
    assert_same(final_weights(resumed), weights)


def _save_for_ever(path: Path) -> None:
    state = {"weights": torch.zeros(4_000_000)}
    while True:
        AtomicCheckpointIO().save_checkpoint(state, path)


def test_kill_while_saving_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    for attempt in range(3):
        process = torch.multiprocessing.get_context("fork").Process(target=_save_for_ever, args=(path,))
        process.start()
        while not path.exists():
            time.sleep(0.001)
        time.sleep(0.02 + 0.017 * attempt)
        process.kill()
        process.join()
        assert len(torch.load(path, weights_only=True)["weights"]) == 4_000_000
    assert {file.name for file in tmp_path.iterdir()} <= {"last.ckpt", ".last.ckpt.tmp"}


# Two processes or one, killed in an early epoch, resumed, killed in a late epoch, resumed to the end.


def assert_same(one: Any, two: Any) -> None:
    if isinstance(one, Tensor):
        assert torch.equal(one, two)
    elif isinstance(one, dict):
        assert list(one) == list(two)
        for name in one:
            assert_same(one[name], two[name])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two)
        for pair in zip(one, two):
            assert_same(*pair)
    else:
        assert one == two
