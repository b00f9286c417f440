"""Compiling a training step changes neither what is learned nor what a checkpoint holds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from ldl.backbones.base import Identity
from ldl.backbones.timm import Timm
from ldl.callbacks import Compiled
from ldl.collective import Collective
from ldl.data.synthetic import RotatedDigits
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import AAKNN, LDLF, Softmax
from ldl.labels import LabelSpace
from ldl.methods.forest.soft import update_leaves
from ldl.task import Task

HEADS = [
    Softmax(objective="mean_variance", hidden=[8], dropout=0.1),
    LDLF(trees=2, depth=3, routing="current", anneal=2.0, tree_dropout=0.1, members=2, hidden=[8]),
]


@pytest.fixture
def no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch records graphs as ever, and does not spend a minute on writing code for them."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))


@pytest.mark.parametrize("head", HEADS)
def test_the_loss_of_a_head_is_one_graph(head: Head, no_code: None) -> None:
    head.build(6, LabelSpace.ordinal(range(5), "years"))
    features, target = torch.rand(8, 6), torch.rand(8, 5).softmax(-1)
    compiled = torch.compile(head.train().loss, fullgraph=True, dynamic=False)
    torch.manual_seed(0)
    found = compiled(features, target)["loss"]
    torch.manual_seed(0)
    torch.testing.assert_close(found, head.loss(features, target)["loss"])


def test_the_update_of_leaves_is_one_graph(no_code: None) -> None:
    routing, target = torch.rand(8, 2, 4).softmax(-1), torch.rand(8, 5).softmax(-1)
    leaves = torch.full((2, 4, 5), 0.2)
    given = routing, target, leaves, 3, Collective(), 0.1, 1e-3
    torch.testing.assert_close(torch.compile(update_leaves, fullgraph=True)(*given), update_leaves(*given))


def _fit(head: Head, compile: Compiled, folder: Path) -> Task:
    torch.manual_seed(0)
    task = Task(head, Identity(flatten=True), compile=compile)
    trainer = pl.Trainer(
        max_epochs=1, limit_train_batches=5, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit(task, datamodule=RotatedDigits(turns=1, batch_size=64))
    trainer.save_checkpoint(folder / f"{compile}.ckpt")
    return task


def test_a_run_learns_the_same_and_its_checkpoint_keeps_its_names(no_code: None, tmp_path: Path) -> None:
    plain, compiled = (_fit(LDLF(trees=2, depth=3, batches=2), what, tmp_path) for what in ("none", "all"))
    assert list(plain.state_dict()) == list(compiled.state_dict())
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(compiled.state_dict()[name], tensor, rtol=1e-5, atol=1e-5)
    # The methods are back, also in what is loaded.
    for task in (compiled, Task.load_from_checkpoint(tmp_path / "all.ckpt")):
        assert "loss" not in vars(task.head) and "forward" not in vars(task.backbone)


def test_what_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(LDLError, match="model.compile head: AAKNN is fitted and takes no steps to compile; set none"):
        Task(AAKNN(), compile="head")
    with pytest.raises(LDLError, match="compiles the backbone already; set model.backbone.compiled false"):
        Task(Softmax(), Timm(compiled=True), compile="all")
    with pytest.raises(LDLError, match="model.compile 'loss' must be one of none, head, all"):
        Task(Softmax(), compile="loss")  # type: ignore[arg-type]
