"""Schedules whose length is the trainer's."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.cli import ReduceLROnPlateau as Plateau
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, ReduceLROnPlateau

from ldl.backbones.base import Identity
from ldl.data import RotatedDigits
from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.labels import LabelSpace
from ldl.schedule import Cosine, WarmupCosine
from ldl.task import Task


def _rates(total: int, warmup: float, late: bool) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    schedule = WarmupCosine(optimizer, warmup, None if late else total)
    if late:
        schedule.start(total)
    rates = []
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return [*rates, optimizer.param_groups[0]["lr"]]


@pytest.mark.parametrize("late", [False, True], ids=["given", "filled in"])
def test_rises_then_falls_to_zero(late: bool) -> None:
    rates = _rates(100, 0.2, late)
    assert rates[0] == pytest.approx(0.02)
    assert rates[20] == max(rates) == pytest.approx(2.0)
    assert rates[60] == pytest.approx(1.0)
    assert rates[100] == pytest.approx(0.0, abs=1e-9)
    assert all(a < b for a, b in zip(rates[:20], rates[1:21])) and all(a > b for a, b in zip(rates[20:], rates[21:]))


def test_no_warmup_begins_at_the_top() -> None:
    assert _rates(10, 0.0, late=True)[0] == 2.0


@pytest.mark.parametrize(
    ("options", "message"), [({"warmup": 1.0}, "warmup 1.0"), ({"total_steps": 0}, "total_steps 0")]
)
def test_wrong_arguments_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(LDLError, match=f"WarmupCosine {message} must be"):
        WarmupCosine(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0), **options)  # type: ignore[arg-type]


def test_the_task_counts_the_trainers_steps(tmp_path: Path) -> None:
    rates: list[float] = []

    class Watch(pl.Callback):
        def on_train_batch_start(self, trainer: pl.Trainer, *unused: object) -> None:
            rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    task = Task(
        Softmax(),
        Identity(flatten=True),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        lr_scheduler=lambda optimizer: WarmupCosine(optimizer, 0.25),
    )
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = pl.Trainer(max_epochs=2, default_root_dir=tmp_path, callbacks=[Watch()], **quiet)  # type: ignore[arg-type]
    trainer.fit(task, datamodule=RotatedDigits(turns=1, batch_size=100))
    steps = trainer.global_step
    assert len(rates) == steps > 20
    assert rates[0] == pytest.approx(0.01) and max(rates) == pytest.approx(1.0, abs=0.05)
    assert rates.index(max(rates)) == pytest.approx(steps / 4, abs=1)
    assert rates[-1] < 0.02


QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
CUT: dict[str, Any] = {"accelerator": "cpu", "limit_train_batches": 5, "limit_val_batches": 0}
DIGITS = RotatedDigits(turns=1, batch_size=100)


def _run(
    folder: Path, make: Any, interval: Literal["epoch", "step"] = "epoch", ckpt: Path | None = None, **trainer: Any
) -> tuple[list[float], pl.Trainer]:
    """The learning rate at the first batch of every epoch, or at every batch, of a run of five batches an epoch."""
    rates: list[float] = []

    class Watch(pl.Callback):
        def on_train_batch_start(self, trainer: pl.Trainer, module: Any, batch: Any, number: int) -> None:
            if interval == "step" or number == 0:
                rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    def sgd(parameters: Any) -> torch.optim.SGD:
        return torch.optim.SGD(parameters, lr=1.0)

    task = Task(Softmax(), Identity(flatten=True), optimizer=sgd, lr_scheduler=make, lr_interval=interval)
    made = pl.Trainer(default_root_dir=folder, callbacks=[Watch()], **QUIET, **trainer, **CUT)
    made.fit(task, datamodule=DIGITS, ckpt_path=ckpt, weights_only=True)
    return rates, made


def test_cosine_is_torchs_as_long_as_the_run(tmp_path: Path) -> None:
    own, _ = _run(tmp_path, Cosine, max_epochs=4)
    assert own == _run(tmp_path, lambda optimizer: CosineAnnealingLR(optimizer, 4), max_epochs=4)[0]
    assert own == pytest.approx([0.5 * (1 + math.cos(math.pi * epoch / 4)) for epoch in range(4)])
    steps, _ = _run(tmp_path, Cosine, "step", max_epochs=2)
    assert steps == pytest.approx([0.5 * (1 + math.cos(math.pi * step / 10)) for step in range(10)])
    # Ten steps are two epochs.
    assert _run(tmp_path, Cosine, max_steps=10)[0] == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize("make", [Cosine, WarmupCosine])
def test_a_run_that_goes_on_goes_on_along_the_longer_curve(tmp_path: Path, make: Any) -> None:
    _, first = _run(tmp_path, make, "step", max_epochs=2)
    first.save_checkpoint(tmp_path / "two.ckpt")
    rates, _ = _run(tmp_path, make, "step", tmp_path / "two.ckpt", max_epochs=4)
    assert rates == pytest.approx(_run(tmp_path, make, "step", max_epochs=4)[0][10:])


def test_a_length_of_its_own_is_told(tmp_path: Path) -> None:
    told = "CosineAnnealingLR has T_max 40, and training has 1 epochs; set T_max 1, or take ldl.schedule.Cosine"
    with pytest.warns(UserWarning, match=told):
        _run(tmp_path, lambda optimizer: CosineAnnealingLR(optimizer, 40), max_epochs=1)
    with pytest.warns(UserWarning, match="WarmupCosine has total_steps 7, and training has 5 steps"):
        _run(tmp_path, lambda optimizer: WarmupCosine(optimizer, 0.1, 7), max_epochs=1)
    with pytest.warns(UserWarning, match="OneCycleLR has total_steps 9, and training has 5 steps"):
        _run(tmp_path, lambda optimizer: OneCycleLR(optimizer, 0.1, total_steps=9), "step", max_epochs=1)


def test_a_schedule_that_ends_before_the_run_or_never_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="OneCycleLR has total_steps 4, and training has 5 steps: it would stop there"):
        _run(tmp_path, lambda optimizer: OneCycleLR(optimizer, 0.1, total_steps=4), "step", max_epochs=1)
    for make in (Cosine, WarmupCosine):
        with pytest.raises(LDLError, match=f"{make.__name__} is as long as the run, which has no end; set trainer"):
            _run(tmp_path, make, max_epochs=-1)
    with pytest.raises(LDLError, match="Cosine T_max 0 must be at least 1"):
        Cosine(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0), T_max=0)


def _plateau(folder: Path, make: Any, **options: Any) -> tuple[float, float]:
    """The best metric of a scheduler in a run without learning, and the metric at the end."""
    torch.manual_seed(0)
    task = Task(
        Softmax(),
        Identity(flatten=True),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.0),
        lr_scheduler=make,
        **options,
    )
    trainer = pl.Trainer(max_epochs=1, default_root_dir=folder, accelerator="cpu", limit_train_batches=1, **QUIET)
    trainer.fit(task, datamodule=RotatedDigits(turns=1, batch_size=100))
    (config,) = trainer.lr_scheduler_configs
    return config.scheduler.best, float(trainer.callback_metrics["val_cosine"])


@pytest.mark.parametrize("make", [None, CosineAnnealingLR])
def test_a_monitor_that_nothing_watches_is_named(make: Any) -> None:
    task = Task(Softmax(), Identity(flatten=True), lr_scheduler=make and partial(make, T_max=3), lr_monitor="val_mae")
    task.build(LabelSpace.nominal("ab"), (2,))
    with pytest.warns(UserWarning, match="model.lr_monitor 'val_mae' has no effect: only ReduceLROnPlateau watches"):
        task.configure_optimizers()


def test_the_plateau_of_lightning_has_its_own_monitor(tmp_path: Path) -> None:
    own = _plateau(tmp_path, lambda optimizer: Plateau(optimizer, "val_cosine", mode="max"))
    assert own[0] == pytest.approx(own[1]) and 0 < own[0] < 1
    of_torch = _plateau(tmp_path, lambda optimizer: ReduceLROnPlateau(optimizer, "max"), lr_monitor="val_cosine")
    assert own == of_torch
    with pytest.raises(LDLError, match="model.lr_scheduler.monitor 'val_cosin' must be one of .* mean 'val_cos"):
        _plateau(tmp_path, lambda optimizer: Plateau(optimizer, "val_cosin"))
    with pytest.raises(LDLError, match="ReduceLROnPlateau.mode min takes the worst val_cosine"):
        _plateau(tmp_path, lambda optimizer: Plateau(optimizer, "val_cosine"))
    with pytest.raises(LDLError, match="lr_monitor 'val_mae' and model.lr_scheduler.monitor 'val_kl' differ; leave"):
        _plateau(tmp_path, lambda optimizer: Plateau(optimizer, "val_kl"), lr_monitor="val_mae")
