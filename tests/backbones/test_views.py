"""Kept views of fixed layers: what the whole network computes of the same pictures, and computed once."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import timm
import torch

from ldl.backbones.split import Split
from ldl.backbones.timm import Timm
from ldl.backbones.views import KeptViews, keep_views
from ldl.batch import mixup
from ldl.data import UTKFace
from ldl.data.sampler import DealtBatchSampler
from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.task import Task

SMALL = "mobilenetv2_035"
CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("cache")


def _data(root: Path, **options: Any) -> UTKFace:
    data = UTKFace(root=str(root), **{"crop_size": 32, "protocol": "holdout", "val_fraction": 0, **options})
    data.setup()
    return data


def _backbone(**options: Any) -> Timm:
    torch.manual_seed(0)
    backbone = Timm(SMALL, **{"freeze_groups": 5, "views": 3, **options})
    backbone.build((3, 32, 32))
    return backbone


@pytest.mark.parametrize("enlarge", [1, 1.5])
@pytest.mark.parametrize("groups", [1, 2, 5, 9])
def test_a_cut_network_is_the_whole_one(groups: int, enlarge: float) -> None:
    backbone, pictures = _backbone(freeze_groups=groups, enlarge=enlarge), torch.randn(3, 3, 32, 32)
    maps = backbone.kept(pictures)
    backbone.train()
    torch.testing.assert_close(backbone.from_kept(maps[:, None]), backbone(pictures), atol=1e-5, rtol=1e-5)
    assert not [module for module in backbone.modules() if "forward" in vars(module)]


@pytest.mark.parametrize("name", ["resnet10t", "efficientnet_lite0", "regnetx_002", "convnext_atto"])
def test_cuts_of_other_networks(name: str) -> None:
    torch.manual_seed(0)
    backbone = Timm(name, freeze_groups=3, views=1)
    backbone.build((3, 64, 64))
    pictures = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(
        backbone.eval()(pictures),
        backbone.from_kept(torch.stack([backbone.kept(pictures)] * 2, 1)),
        atol=1e-4,
        rtol=1e-4,
    )


def test_gradients_are_those_of_the_whole_network() -> None:
    backbone, pictures = _backbone(), torch.randn(4, 3, 32, 32)
    backbone.train()
    state = copy.deepcopy(backbone.state_dict())
    found = []
    for features in (lambda: backbone(pictures), lambda: backbone.from_kept(backbone.kept(pictures)[:, None])):
        backbone.load_state_dict(state)
        backbone.zero_grad()
        features().square().sum().backward()
        found.append({n: p.grad.clone() for n, p in backbone.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys() and found[0]
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, atol=1e-3, rtol=1e-3)


def test_a_network_with_other_layers_beside_the_fixed_ones_is_not_cut() -> None:
    network = timm.create_model("resnet10t")
    with pytest.raises(LDLError, match="cannot be cut after its fixed layers"):
        Split(network, [network.layer2], torch.randn(2, 3, 64, 64))


@pytest.mark.parametrize("options", [{"freeze_groups": 0}, {"freeze": True}])
def test_views_need_frozen_groups(options: dict[str, Any]) -> None:
    with pytest.raises(LDLError, match="Timm.views 3 needs freeze_groups without freeze"):
        _backbone(**options)


@pytest.mark.parametrize("mirror", [False, True])
def test_evaluation_is_that_of_the_backbone(mirror: bool, root: Path) -> None:
    backbone, data = _backbone(mirror=mirror), _data(root, batch_size=64)
    (pictures,) = list(data.test_dataloader())
    expected = backbone.eval()(pictures["input"])
    data.views = keep_views(backbone, data, CPU)
    (kept,) = list(data.test_dataloader())
    assert "input" not in kept
    torch.testing.assert_close(backbone.from_kept(kept["maps"]), expected, atol=1e-4, rtol=1e-4)


def test_training_draws_all_views_of_its_own_pictures(root: Path) -> None:
    backbone, data = _backbone(), _data(root, batch_size=4, augmentation="strong")
    made = keep_views(backbone, data, CPU)
    assert made is not None and made.maps.shape[:2] == (12, 5)
    assert not torch.equal(made.maps[:, 2], made.maps[:, 3])
    numbered = KeptViews(torch.arange(60).reshape(12, 5), "")
    drawn: dict[int, set[int]] = {}
    for epoch in range(12):
        sampler = DealtBatchSampler(len(data.split.train), 4, True, position=partial(tuple, (epoch, 0)))
        for draws in sampler:
            rows = data.split.train[draws.rows]
            for row, number in zip(rows.tolist(), numbered.inputs(rows, draws.seeds, True)[:, 0].tolist()):
                assert number // 5 == row
                drawn.setdefault(row, set()).add(number % 5)
    assert drawn == {row: {2, 3, 4} for row in data.split.train.tolist()}
    assert numbered.inputs(np.array([3, 1]), np.zeros(2, int), False).tolist() == [[15, 16], [5, 6]]


def test_views_are_computed_once_and_anew_where_they_are_others(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _data(root)
    first = keep_views(_backbone(), data, CPU)
    data.views = first
    assert keep_views(_backbone(lr=1e-3, drop_path_rate=0.1), data, CPU) is first

    def files() -> int:
        return len(list((cache / "features").glob("*.npy")))

    again = keep_views(_backbone(), _data(root), CPU)
    assert files() == 1 and again is not None and first is not None and torch.equal(again.maps, first.maps)
    trained = _backbone()
    torch.nn.init.ones_([weight for weight in trained.parameters() if weight.requires_grad][0])
    assert keep_views(trained, data, CPU) is first
    made = [({"views": 4}, {}), ({"freeze_groups": 4}, {}), ({"enlarge": 1.5}, {}), ({}, {"augmentation": "strong"})]
    for options, others in made:
        keep_views(_backbone(**options), _data(root, **others), CPU)
    assert files() == 5
    monkeypatch.setenv("PL_GLOBAL_SEED", "7")
    keep_views(_backbone(), data, CPU)
    assert files() == 6
    assert keep_views(_backbone(views=0, freeze_groups=5), data, CPU) is None


def test_a_run_on_views_tests_what_its_pictures_give(root: Path, tmp_path: Path) -> None:
    data = _data(root, batch_size=4, balance=0.5)
    task = Task(Softmax(), _backbone(), mixup=0.2)
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(task, data)
    first = data.views
    (kept,) = trainer.test(task, data, verbose=False)
    assert data.views is first  # the layers that have learned are not those that are kept
    data.views, task.backbone.views = None, 0
    (whole,) = trainer.test(task, data, verbose=False)
    assert kept["test_mae"] == pytest.approx(whole["test_mae"], abs=1e-3)


def test_a_checkpoint_of_a_run_on_views_is_loaded_and_goes_on(root: Path, tmp_path: Path) -> None:
    data = _data(root, batch_size=4)
    task = Task(Softmax(), _backbone())
    options: dict[str, Any] = {
        "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
        "enable_model_summary": False,
    }  # fmt: skip
    trainer = pl.Trainer(max_epochs=1, **options)
    trainer.fit(task, data)
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    loaded = Task.load_from_checkpoint(tmp_path / "a.ckpt")
    (batch,) = list(_data(root, batch_size=64).test_dataloader())
    torch.testing.assert_close(loaded(batch["input"]), task.eval()(batch["input"]))
    pl.Trainer(max_epochs=2, **options).fit(loaded, data)


def test_a_cut_leaves_modes_as_they_are_and_belongs_to_the_last_build() -> None:
    backbone = _backbone()
    backbone.train()
    before = [module.training for module in backbone.network.modules()]
    assert set(before) == {True, False}
    backbone._split = None
    backbone.kept(torch.randn(2, 3, 32, 32))
    assert [module.training for module in backbone.network.modules()] == before
    backbone.build((3, 32, 32))
    assert backbone._split is not None and backbone._split.network is backbone.network


def test_mixup_mixes_views_as_targets() -> None:
    torch.manual_seed(0)
    rows = torch.rand(6, 4)
    mixed = mixup({"maps": rows, "target": rows, "index": torch.arange(6)}, 1.0)
    assert torch.equal(mixed["maps"], mixed["target"]) and not torch.equal(mixed["maps"], rows)
