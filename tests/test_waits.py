"""A training step never waits for the device: the host reads nothing of it that is not there yet."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from fakes.device_waits import Waits, mark, send
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from ldl.backbones.base import Identity
from ldl.collective import Collective
from ldl.data.synthetic import RotatedDigits
from ldl.heads import LDLF, Softmax
from ldl.labels import LabelSpace
from ldl.run.console import Bar
from ldl.task import Task

HEADS = {
    "softmax": lambda: Softmax(hidden=[8], dropout=0.1),
    "ldlf": lambda: LDLF(trees=2, depth=3, outputs=4, batches=2, tree_dropout=0.1),
    "current": lambda: LDLF(trees=2, depth=3, outputs=4, batches=2, routing="current", members=2, hidden=[4]),
    "alternating": lambda: LDLF(trees=2, depth=3, outputs=None, batches=2, ensemble="alternating"),
}


class _Sent(RotatedDigits):
    """Batches count as being on a device."""

    def on_after_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> dict[str, Any]:
        return {name: send(part) if isinstance(part, Tensor) else part for name, part in batch.items()}


class _Count(pl.Callback):
    def __init__(self, waits: Waits) -> None:
        self.waits = waits
        self.places: list[list[str]] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        mark(*pl_module.parameters(), *pl_module.buffers())

    def on_train_batch_end(self, *args: Any) -> None:
        self.places.append(list(self.waits.found))
        self.waits.found.clear()


@pytest.mark.parametrize("mixup", [0.0, 0.4])
@pytest.mark.parametrize("head", HEADS)
def test_no_step_of_a_run_waits(head: str, mixup: float) -> None:
    with Waits() as waits:
        count, bar = _Count(waits), Bar(transient=True)
        trainer = pl.Trainer(
            max_epochs=1, limit_train_batches=6, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_model_summary=False, num_sanity_val_steps=0, callbacks=[bar, count],
        )  # fmt: skip
        data = _Sent(turns=1, batch_size=16, val_fraction=0)
        trainer.fit(Task(HEADS[head](), Identity(flatten=True), mixup=mixup), datamodule=data)
    # The first step holds the head against its contract, and shows the bar's first loss.
    assert len(count.places) == 6 and count.places[0] and count.places[1:] == [[]] * 5
    assert waits.found  # the end of the epoch looks at everything


@pytest.mark.gpu
@pytest.mark.parametrize("head", HEADS)
def test_no_step_waits_for_a_gpu(head: str) -> None:
    """CUDA itself counts."""

    class Count(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
            torch.cuda.set_sync_debug_mode("error" if 2 <= trainer.global_step < 12 else "default")

    trainer = pl.Trainer(
        max_epochs=1, limit_train_batches=14, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
        enable_model_summary=False, enable_progress_bar=False, num_sanity_val_steps=0, callbacks=[Count()],
    )  # fmt: skip
    task = Task(HEADS[head](), Identity(flatten=True), mixup=0.4)
    try:
        trainer.fit(task, datamodule=RotatedDigits(turns=1, batch_size=16, val_fraction=0))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert trainer.global_step == 14


@pytest.mark.parametrize("head", ["softmax", "ldlf", "current"])
def test_heads_learn_from_tensors_that_hold_nothing(head: str) -> None:
    """Fake tensors of a GPU refuse whatever needs a number of them; and the host waits for no copy from or to it."""
    labels = LabelSpace.ordinal(range(5), "years")
    with FakeTensorMode(), _Copies() as copies, torch.device("cuda"):
        made = HEADS[head]()
        made.build(6, labels)
        copies.found.clear()
        features, target = torch.rand(4, 6), torch.rand(4, 5)
        for _ in range(2):
            losses = made.train().loss(features, target)
            if isinstance(made, LDLF):
                made.observe(losses.get("memory", features), target)
        if isinstance(made, LDLF):
            made.update(Collective())
    assert losses["loss"].device.type == "cuda" and copies.found == []


class _Copies(TorchDispatchMode):
    """Copies between host and device that the host waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket in (torch.ops.aten._to_copy, torch.ops.aten.copy_):
            waits = not (kwargs or {}).get("non_blocking", len(args) > 2 and args[2])
            source = args[1] if func.overloadpacket is torch.ops.aten.copy_ else args[0]
            if waits and source.device.type != out.device.type:
                self.found.append(str(func))
        return out
