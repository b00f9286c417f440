"""``model.start``: fine-tuning begins with the very model that a checkpoint holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from fakes.tasks import AGES, EMOTIONS, WIDTH, saved, small_task

from ldl.backbones import Timm
from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.task import Task


@pytest.mark.parametrize("make", [lambda: Softmax(hidden=[8]), lambda: LDLF(trees=2, depth=3)])
def test_a_task_begins_as_its_checkpoint_ends(make: Any, tmp_path: Path) -> None:
    task = small_task(make(), AGES)
    file = saved(task, tmp_path / "a.ckpt")
    begun = Task(make(), start=str(file))
    begun.build(AGES, (WIDTH,))
    rows = torch.randn(7, WIDTH)
    torch.testing.assert_close(begun.eval()(rows), task.eval()(rows))
    fresh = Task(make())
    fresh.build(AGES, (WIDTH,))
    assert not torch.allclose(fresh.eval()(rows), task(rows))


def test_a_backbone_comes_along_and_may_be_frozen_in_another_way(tmp_path: Path) -> None:
    trained = Task(Softmax(), Timm("mobilenetv2_035", drop_path_rate=0.1))
    trained.build(AGES, (3, 32, 32))
    begun = Task(
        Softmax(), Timm("mobilenetv2_035", freeze_groups=3, lr=1e-3), start=str(saved(trained, tmp_path / "a.ckpt"))
    )
    begun.build(AGES, (3, 32, 32))
    pictures = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    torch.testing.assert_close(begun.eval()(pictures), trained.eval()(pictures))


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda **o: Softmax(hidden=[8, 8], **o), {"dropout": 0.2, "feature_dropout": 0.1}),
        (lambda **o: LDLF(trees=2, depth=3, hidden=[8], **o), {"dropout": 0.2, "feature_dropout": 0.1}),
        (lambda **o: LDLF(trees=2, depth=3, hidden=[8], members=2, **o), {"feature_dropout": 0.1}),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_dropout_may_differ(make: Any, other: dict[str, Any], turned: bool, tmp_path: Path) -> None:
    first, then = (other, {}) if turned else ({}, other)
    task = small_task(make(**first), AGES)
    begun = Task(make(**then), start=str(saved(task, tmp_path / "a.ckpt")))
    begun.build(AGES, (WIDTH,))
    rows = torch.randn(7, WIDTH)
    torch.testing.assert_close(begun.eval()(rows), task.eval()(rows))


@pytest.mark.parametrize(
    ("head", "labels", "message"),
    [
        (Softmax(), EMOTIONS, "has the labels 10 to 60 years, and the data have happy to angry"),
        (LDLF(trees=1, depth=2), AGES, "holds a head Softmax, not LDLF; correct model.head"),
        (Softmax(hidden=[4]), AGES, "does not fit model.head"),
        (MeanPredictor(), AGES, "MeanPredictor is always fitted from scratch and cannot begin from"),
    ],
)
def test_what_does_not_fit_is_refused(head: Head, labels: LabelSpace, message: str, tmp_path: Path) -> None:
    file = saved(small_task(Softmax(), AGES), tmp_path / "a.ckpt")
    with pytest.raises(LDLError, match=message):
        Task(head, start=str(file)).build(labels, (WIDTH,))


def test_another_network_is_refused(tmp_path: Path) -> None:
    trained = Task(Softmax(), Timm("mobilenetv2_035"))
    trained.build(AGES, (3, 32, 32))
    file = saved(trained, tmp_path / "a.ckpt")
    with pytest.raises(LDLError, match="holds a backbone Timm mobilenetv2_035, not Timm resnet10t"):
        Task(Softmax(), Timm("resnet10t"), start=str(file)).build(AGES, (3, 32, 32))


def test_no_file_is_refused() -> None:
    with pytest.raises(LDLError, match="no checkpoint at nowhere.ckpt"):
        Task(Softmax(), start="nowhere.ckpt").build(AGES, (WIDTH,))


def test_labels_in_another_order_are_put_in_that_of_the_checkpoint(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["x", "y"])
    target = pd.DataFrame(rng.dirichlet(np.ones(3), 40), columns=["label:a", "label:b", "label:c"])
    table.join(target).to_csv(tmp_path / "first.csv", index=False)
    table.join(target[["label:c", "label:a", "label:b"]]).to_csv(tmp_path / "then.csv", index=False)
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False}
    file, ended = tmp_path / "a.ckpt", []
    for name, start in (("first", None), ("then", str(file))):
        torch.manual_seed(0)
        task = Task(Softmax(), optimizer=lambda groups: torch.optim.SGD(groups, lr=0.0), start=start)
        data = TabularLDL(str(tmp_path / f"{name}.csv"))
        pl.Trainer(max_epochs=1, accelerator="cpu", default_root_dir=tmp_path, **quiet).fit(task, datamodule=data)
        assert task.labels.names == data.labels.names == ("a", "b", "c")
        ended.append((task(data.scaled), data.columns["target"]))
        saved(task, file)
    torch.testing.assert_close(ended[0], ended[1])
