"""Frozen layers: features and cached augmentations equal the network's, are computed once, and follow every change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import albumentations as A
import numpy as np
import pytest
import pytorch_lightning as pl
import timm
import torch
from fakes.face_releases import utkface

from ldl.backbones import Identity, Timm
from ldl.backbones.frozen import CachedAugmentations, cache_augmentations, cache_features
from ldl.backbones.timm import NetworkSplit
from ldl.data.sampler import DealtBatchSampler
from ldl.errors import LDLError
from ldl.faces import UTKFace
from ldl.heads import Softmax
from ldl.task import Task

SMALL = "test_efficientnet"
CPU = torch.device("cpu")
QUIET: dict[str, Any] = {
    "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
    "enable_model_summary": False,
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve synthetic faces."""
    return utkface(tmp_path_factory.mktemp("data"), 12)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("LDL_CACHE", str(tmp_path))
    return tmp_path


def _files(cache: Path) -> int:
    return len(list((cache / "features").glob("*/features.npy")))


def _data(root: Path, **options: Any) -> UTKFace:
    data = UTKFace(root=str(root), **{"crop_size": 32, "protocol": "holdout", "val_fraction": 0, **options})
    data.setup()
    return data


def _backbone(**options: Any) -> Timm:
    torch.manual_seed(0)
    backbone = Timm(SMALL, **({"freeze": True} | options))
    backbone.build((3, 32, 32))
    return backbone


def _augmented(**options: Any) -> Timm:
    return _backbone(**({"freeze": False, "freeze_groups": 5, "views": 3} | options))


def test_features_are_those_of_the_backbone_in_evaluation(root: Path) -> None:
    backbone, data = _backbone(mirror=True), _data(root, batch_size=64)
    (batch,) = list(data.whole_dataloader())
    expected = backbone.eval()(batch["input"])
    backbone.train()
    cache_features(backbone, data, CPU)
    assert backbone.training and data.backbone_features is not None
    torch.testing.assert_close(data.backbone_features, expected, atol=1e-4, rtol=1e-4)
    for part, loader in ((data.split.train, data.train_dataloader()), (data.split.test, data.test_dataloader())):
        for served in loader:
            assert "input" not in served
            assert set(served["index"].tolist()) <= set(part.tolist())
            torch.testing.assert_close(served["features"], expected[served["index"]], atol=1e-4, rtol=1e-4)


def test_the_second_time_nothing_is_computed(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _data(root)
    cache_features(_backbone(), first, CPU)
    second, backbone = _data(root, batch_size=5), _backbone()
    monkeypatch.setattr(backbone, "forward", lambda inputs: pytest.fail("computed again"))
    cache_features(backbone, second, CPU)
    assert first.backbone_features is not None and second.backbone_features is not None
    assert torch.equal(first.backbone_features, second.backbone_features)
    assert _files(cache) == 1


@pytest.mark.parametrize(
    ("change", "options", "files"),
    [
        (lambda backbone: next(backbone.parameters()).data.add_(1e-6), {}, 2),
        (lambda backbone: setattr(backbone, "mirror", True), {}, 2),
        (None, {"eval_transforms": [A.ToGray(p=1)]}, 2),
        (None, {"fold_seed": 3}, 1),
        (None, {"train_transforms": [A.ToGray(p=1)]}, 1),
    ],
)
def test_features_follow_every_change(
    change: Callable[[Timm], None] | None, options: dict[str, Any], files: int, root: Path, cache: Path
) -> None:
    """Weights, options and pictures count; folds, labels and augmentation share features."""
    backbone = _backbone()
    cache_features(backbone, _data(root), CPU)
    if change is not None:
        change(backbone)
    cache_features(backbone, _data(root, **options), CPU)
    assert _files(cache) == files


@pytest.mark.parametrize("backbone", [_augmented(views=0), Identity(flatten=True)])
def test_a_backbone_that_trains_or_has_no_weights_sees_pictures(backbone: Timm | Identity, root: Path) -> None:
    data = _data(root)
    cache_features(backbone, data, CPU)
    assert data.backbone_features is None
    assert "input" in next(iter(data.train_dataloader()))


@pytest.mark.parametrize("options", [{"freeze": True}, {"freeze_groups": 5, "views": 2}], ids=["features", "views"])
def test_a_checkpoint_has_features_of_its_own_frozen_layers(
    options: dict[str, Any], root: Path, tmp_path: Path
) -> None:
    """The features are those of the checkpoint, for any random network of the task that loads it."""

    def trainer() -> pl.Trainer:
        return pl.Trainer(max_epochs=1, **QUIET)

    def task() -> Task:
        return Task(Softmax(), Timm(SMALL, **options))

    def served() -> Any:
        return data.features_key or data.views.key

    data, run, trained = UTKFace(root=str(root), crop_size=32, protocol="holdout", val_fraction=0), trainer(), task()
    run.fit(trained, data)
    (expected,) = run.test(trained, data, verbose=False)
    run.save_checkpoint(file := tmp_path / "a.ckpt")
    key = served()
    (found,) = trainer().test(task(), data, ckpt_path=file, weights_only=True, verbose=False)
    assert found == pytest.approx(expected, nan_ok=True)
    trainer().fit(task(), data, ckpt_path=file, weights_only=True)
    assert served() == key


@pytest.mark.parametrize(("groups", "enlarge"), [(1, 1.0), (5, 1.5)])
def test_a_split_network_equals_the_whole_one(groups: int, enlarge: float) -> None:
    backbone, pictures = _augmented(freeze_groups=groups, enlarge=enlarge), torch.randn(3, 3, 32, 32)
    maps = backbone.frozen_maps(pictures)
    backbone.train()
    torch.testing.assert_close(backbone.from_frozen_maps(maps[:, None]), backbone(pictures), atol=1e-5, rtol=1e-5)
    assert not [module for module in backbone.modules() if "forward" in vars(module)]


def test_networks_that_cannot_be_split_are_named() -> None:
    network = timm.create_model("test_resnet")
    with pytest.raises(LDLError, match="cannot be cut after its frozen layers"):
        NetworkSplit(network, [network.layer2], torch.randn(2, 3, 64, 64))
    for options in ({"freeze_groups": 0}, {"freeze": True}):
        with pytest.raises(LDLError, match="Timm.views 3 needs freeze_groups without freeze"):
            _augmented(**options)


def test_training_draws_all_views_of_its_own_pictures(root: Path) -> None:
    backbone, data = _augmented(), _data(root, batch_size=4, augmentation="strong")
    made = cache_augmentations(backbone, data, CPU)
    assert made is not None and made.maps.shape[:2] == (12, 5)
    assert not torch.equal(made.maps[:, 2], made.maps[:, 3])
    numbered = CachedAugmentations(torch.arange(60).reshape(12, 5), "")
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


def test_views_are_computed_once_and_again_after_a_change(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _data(root)
    first = cache_augmentations(_augmented(), data, CPU)
    data.views = first
    assert cache_augmentations(_augmented(lr=1e-3, drop_path_rate=0.1), data, CPU) is first

    again = cache_augmentations(_augmented(), _data(root), CPU)
    assert _files(cache) == 1 and again is not None and first is not None and torch.equal(again.maps, first.maps)
    trained = _augmented()
    torch.nn.init.ones_([weight for weight in trained.parameters() if weight.requires_grad][0])
    assert cache_augmentations(trained, data, CPU) is first
    made = [({"views": 4}, {}), ({"freeze_groups": 4}, {}), ({"enlarge": 1.5}, {}), ({}, {"augmentation": "strong"})]
    for options, others in made:
        cache_augmentations(_augmented(**options), _data(root, **others), CPU)
    assert _files(cache) == 5
    monkeypatch.setenv("PL_GLOBAL_SEED", "7")
    cache_augmentations(_augmented(), data, CPU)
    assert _files(cache) == 6
    assert cache_augmentations(_augmented(views=0), data, CPU) is None
