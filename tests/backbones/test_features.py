"""Features of a fixed backbone: the same as its own, computed once, and anew where anything that makes them changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import albumentations as A
import pytest
import torch

from ldl.backbones.base import Identity
from ldl.backbones.reuse import reuse_features
from ldl.backbones.timm import Timm
from ldl.data import UTKFace

SMALL = "mobilenetv2_035"
CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("cache")


def _data(root: Path, **options: object) -> UTKFace:
    data = UTKFace(root=str(root), crop_size=32, protocol="holdout", val_fraction=0, **options)  # type: ignore[arg-type]
    data.setup()
    return data


def _backbone(**options: object) -> Timm:
    torch.manual_seed(0)
    backbone = Timm(SMALL, **{"freeze": True, **options})  # type: ignore[arg-type]
    backbone.build((3, 32, 32))
    return backbone


def _files(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "features").glob("*.npy"))


@pytest.mark.parametrize("mirror", [False, True])
def test_features_are_those_of_the_backbone_in_evaluation(mirror: bool, root: Path) -> None:
    backbone, data = _backbone(mirror=mirror), _data(root, batch_size=64)
    (batch,) = list(data.whole_dataloader())
    expected = backbone.eval()(batch["input"])
    backbone.train()
    reuse_features(backbone, data, CPU)
    assert backbone.training and data.backbone_features is not None
    torch.testing.assert_close(data.backbone_features, expected, atol=1e-4, rtol=1e-4)
    for part, loader in ((data.split.train, data.train_dataloader()), (data.split.test, data.test_dataloader())):
        for served in loader:
            assert "input" not in served
            assert set(served["index"].tolist()) <= set(part.tolist())
            torch.testing.assert_close(served["features"], expected[served["index"]], atol=1e-4, rtol=1e-4)


def test_the_second_time_nothing_is_computed(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _data(root)
    reuse_features(_backbone(), first, CPU)
    second, backbone = _data(root, batch_size=5), _backbone()
    monkeypatch.setattr(backbone, "forward", lambda inputs: pytest.fail("computed again"))
    reuse_features(backbone, second, CPU)
    assert first.backbone_features is not None and second.backbone_features is not None
    assert torch.equal(first.backbone_features, second.backbone_features)
    assert len(_files(cache)) == 1


def _weight(backbone: Timm) -> None:
    parameter = next(backbone.parameters())
    parameter.data += 1e-6


def _statistic(backbone: Timm) -> None:
    name, buffer = next((n, b) for n, b in backbone.named_buffers() if n.endswith("running_mean"))
    buffer += 1e-3


@pytest.mark.parametrize("change", [_weight, _statistic])
def test_other_weights_give_other_features(change: Callable[[Timm], None], root: Path, cache: Path) -> None:
    backbone = _backbone()
    reuse_features(backbone, _data(root), CPU)
    change(backbone)
    reuse_features(backbone, _data(root), CPU)
    assert len(_files(cache)) == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_another_precision_gives_features_too(dtype: torch.dtype, root: Path, cache: Path) -> None:
    """A trainer converts a backbone after its first features are kept: of those in float64 nothing is computed anew."""
    backbone, data = _backbone(), _data(root)
    reuse_features(backbone, data, CPU)
    expected = data.backbone_features
    reuse_features(backbone.to(dtype), data, CPU)
    assert len(_files(cache)) == (1 if dtype == torch.float64 else 2)
    assert next(backbone.parameters()).dtype == dtype
    assert data.backbone_features is not None
    torch.testing.assert_close(data.backbone_features, expected, rtol=0, atol=0.1)


@pytest.mark.parametrize("options", [{"margin": 0.3}, {"eval_transforms": [A.ToGray(p=1)]}], ids=["crop", "transform"])
def test_other_pictures_give_other_features(options: dict[str, object], root: Path, cache: Path) -> None:
    reuse_features(_backbone(), _data(root), CPU)
    reuse_features(_backbone(), _data(root, **options), CPU)
    assert len(_files(cache)) == 2


@pytest.mark.parametrize("options", [{"fold_seed": 3}, {"train_transforms": [A.ToGray(p=1)]}, {"sigma": 4.0}])
def test_folds_labels_and_augmentation_share_features(options: dict[str, object], root: Path, cache: Path) -> None:
    reuse_features(_backbone(), _data(root), CPU)
    reuse_features(_backbone(), _data(root, **options), CPU)
    assert len(_files(cache)) == 1


@pytest.mark.parametrize("backbone", [_backbone(freeze=False, freeze_groups=3), Identity(flatten=True)])
def test_a_backbone_that_trains_or_has_no_weights_sees_pictures(backbone: Timm | Identity, root: Path) -> None:
    data = _data(root)
    reuse_features(backbone, data, CPU)
    assert data.backbone_features is None
    assert "input" in next(iter(data.train_dataloader()))
