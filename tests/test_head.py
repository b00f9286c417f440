"""What the base classes of heads promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from checkpoints.make import Problem
from torch import Tensor
from torch.utils.data import DataLoader

from ldl.backbones.base import Identity
from ldl.collective import Collective
from ldl.data import RotatedDigits, TabularValues
from ldl.errors import LDLError
from ldl.head import AlternatingHead, FittedHead, check_memory
from ldl.heads import MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.task import Task


class Twins(FittedHead):
    """Two buffers that are one tensor until fitted."""

    first: Tensor
    second: Tensor

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.register_buffer("first", torch.zeros(1, len(labels)))
        self.register_buffer("second", self.first)

    def fit(self, rows: Rows, collective: Collective) -> None:
        self.first, self.second = rows.target, 2 * rows.target

    def forward(self, features: Tensor) -> Tensor:
        return self.first.mean(0).expand(*features.shape[:-1], -1)


def test_buffers_that_begin_as_one_tensor_are_loaded_each() -> None:
    labels = LabelSpace.nominal(["a", "b"])
    fitted, loaded = Twins(), Twins()
    for head in (fitted, loaded):
        head.build(3, labels)
    fitted.fit(Rows(torch.zeros(5, 3), torch.full((5, 2), 0.5)), Collective())
    loaded.load_state_dict(fitted.state_dict())
    assert torch.equal(loaded.first, fitted.first) and torch.equal(loaded.second, fitted.second)


class Watching(Softmax, AlternatingHead):
    """Keeps what it is shown."""

    gives: str | None = "dict"
    update_due = False  # type: ignore[assignment]

    def loss(self, features: Tensor, target: Tensor, value: Any = None, **extra: Any) -> dict[str, Any]:  # type: ignore[override]
        rows = torch.arange(len(features), dtype=torch.float32)
        memory = {"dict": {"rows": rows, "twice": 2 * rows}, "tensor": rows, None: None}[self.gives]
        return {**super().loss(features, target), **({"memory": memory} if memory is not None else {})}

    def observe(self, memory: Any, target: Tensor) -> None:
        self.seen = [*getattr(self, "seen", []), (memory, target)]

    def update(self, collective: Collective) -> None: ...

    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        return {}

    def load_memory_state(self, state: dict[str, Tensor], collective: Collective) -> None: ...


@pytest.mark.parametrize("gives", ["dict", "tensor", None])
@pytest.mark.parametrize("padding", [False, True], ids=["rows", "empty"])
def test_what_the_loss_remembers_is_observed_and_not_logged(gives: str | None, padding: bool, tmp_path: Path) -> None:
    head, data = Watching(), Problem("rows")
    head.gives = gives
    task = Task(head, Identity(), lambda groups: torch.optim.SGD(groups, lr=0.1))
    data.build(task)
    batch = next(iter(data.train_dataloader()))
    if padding:
        batch["weight"] = torch.zeros(8)
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False, use_distributed_sampler=False,
    )  # fmt: skip
    trainer.fit(task, DataLoader([batch], batch_size=None))
    ((memory, target),) = head.seen
    count = 0 if padding else 8
    rows = torch.arange(count, dtype=torch.float32)
    if gives == "dict":
        assert torch.equal(memory["rows"], rows) and torch.equal(memory["twice"], 2 * rows)
    else:
        assert torch.equal(memory, rows if gives == "tensor" else batch["input"][:count])
    assert torch.equal(target, batch["target"][:count])
    assert not any("memory" in name for name in trainer.callback_metrics)
    assert padding or "train_loss_kl" in trainer.callback_metrics


class Drawing(Softmax):
    """Draws a number where it is, on any device."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.drawn = float(torch.rand((), device="cpu"))


def test_a_head_larger_than_the_memory_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = LabelSpace.nominal(["a", "b"])
    state = torch.get_rng_state()
    check_memory(Drawing(hidden=[100]), 10, labels)
    assert torch.equal(torch.get_rng_state(), state)  # looking at it changes no first weights
    monkeypatch.setattr("ldl.head.machine_memory", lambda: 4 * (10 * 100 + 100 + 100 * 2 + 2))
    check_memory(Softmax(hidden=[100]), 10, labels)
    with pytest.raises(LDLError, match=r"^Softmax with these options has 0 GB of weights, and the machine has 0 GB"):
        check_memory(Softmax(hidden=[101]), 10, labels)


class Noisy(Identity):
    """Features that a training backbone does not give twice, with what it counted."""

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        width = super().build(input_shape, load_weights)
        self.noise = torch.nn.Sequential(torch.nn.BatchNorm1d(width), torch.nn.Dropout(0.5))
        return width

    def forward(self, inputs: Tensor) -> Tensor:
        return self.noise(super().forward(inputs))


def test_fitted_heads_get_features_of_evaluation() -> None:
    class Keeps(Twins):
        def fit(self, rows: Rows, collective: Collective) -> None:
            super().fit(rows, collective)
            self.seen = rows.features

    data = RotatedDigits(turns=1, val_fraction=0)
    task = Task(Keeps(), Noisy(flatten=True))
    trainer = pl.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=False)
    trainer.fit(task, datamodule=data)
    task.train()
    fresh = Noisy(flatten=True)
    fresh.build(data.input_shape)
    rows = data.split.train
    inputs = data.inputs(rows, rows, train=False)
    assert torch.equal(task.head.seen, fresh.eval()(inputs))


def test_a_fitted_head_gets_groups_that_the_folds_keep_apart(tmp_path: Path) -> None:
    class SeesGroups(MeanPredictor):
        def fit(self, rows: Rows, collective: Collective) -> None:
            super().fit(rows, collective)
            seen.append(rows.group)

    seen: list[Tensor | None] = []
    rows, persons = np.random.default_rng(0).normal(size=(12, 3)), np.repeat([7, 5, 9], 4)
    apart, mixed = "group_exclusive", "random_kfold"
    for columns, protocol, groups in (
        ({"group": persons}, apart, [1, 0, 2]), ({"group": persons}, mixed, None), ({}, apart, None)
    ):  # fmt: skip
        np.savez(tmp_path / "rows.npz", features=rows, value=rows[:, 0], **columns)
        data = TabularValues(path=str(tmp_path / "rows.npz"), protocol=protocol, folds=3, val_fraction=0, batch_size=5)
        trainer = pl.Trainer(logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu")
        trainer.fit(Task(SeesGroups()), datamodule=data)
        expected = None if groups is None else np.repeat(groups, 4)[data.split.train].tolist()
        found = seen.pop()
        assert (found if found is None else found.tolist()) == expected
