"""Warm-up and cosine, whose length is the trainer's."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from ldl.backbones.base import Identity
from ldl.data import RotatedDigits
from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.schedule import WarmupCosine
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
