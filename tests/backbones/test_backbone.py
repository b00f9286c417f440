"""Backbones: sizes of features, frozen networks, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import load_file

from ldl.backbones.base import Identity
from ldl.backbones.timm import Timm
from ldl.errors import LDLError

SMALL = "mobilenetv2_035"


def test_identity_hands_rows_on_and_flattens_images() -> None:
    assert Identity().build((7,)) == 7
    rows = torch.randn(3, 7)
    assert Identity()(rows) is rows
    backbone = Identity(flatten=True)
    images = torch.randn(3, 2, 4, 5)
    assert backbone.build((2, 4, 5)) == 40
    assert torch.equal(backbone(images), images.reshape(3, 40))


def test_identity_refuses_images_that_are_not_to_be_flattened() -> None:
    with pytest.raises(LDLError, match="inputs of 1x12x12; set model.backbone.flatten: true"):
        Identity().build((1, 12, 12))


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_timm_takes_any_number_of_channels(channels: int) -> None:
    backbone = Timm(SMALL)
    features = backbone.build((channels, 32, 32))
    assert backbone(torch.randn(2, channels, 32, 32)).shape == (2, features)


def _image_like() -> torch.Tensor:
    return torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0)) * 3 + 2


def test_a_frozen_network_keeps_weights_and_statistics() -> None:
    backbone = Timm(SMALL, freeze=True)
    backbone.build((3, 32, 32))
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    # A trainer may or may not call train() before the first batch.
    first = backbone(_image_like())
    assert not backbone.network.training
    backbone.train()
    assert backbone.training
    assert not any(module.training for module in backbone.network.modules())
    assert torch.equal(backbone(_image_like()), first)
    assert not first.requires_grad
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in backbone.state_dict().items())


def test_a_network_that_trains_moves_its_statistics() -> None:
    backbone = Timm(SMALL)
    backbone.build((3, 32, 32))
    backbone.train()
    before = backbone.network.bn1.running_mean.clone()
    assert backbone(_image_like()).requires_grad
    assert not torch.equal(backbone.network.bn1.running_mean, before)


@pytest.mark.parametrize(
    ("backbone", "shape", "message"),
    [
        (Timm("resnet81"), (3, 32, 32), r"timm has no model 'resnet81'; did you mean 'resnet\d+\w*'\?.*list_models"),
        (Timm("zzzzzzzz"), (3, 32, 32), r"timm has no model 'zzzzzzzz'; see timm.list_models\(\)"),
        (Timm(SMALL), (7,), r"Timm needs images .*\(7,\); use Identity"),
        (Timm(SMALL, weights="none.pth"), (3, 32, 32), "no weights file at none.pth; correct model.backbone.weights"),
        (Timm(SMALL, weights="a.pth", pretrained=True), (3, 32, 32), "not both"),
        (Timm("vgg11", drop_path_rate=0.1), (3, 32, 32), "timm cannot make vgg11"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(backbone: Timm, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LDLError, match=message) as caught:
        backbone.build(shape)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"no weights", b""])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_broken_weights_file_is_refused_in_one_line(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(LDLError, match="broken") as caught:
        Timm(SMALL, weights=str(path)).build((3, 32, 32))
    assert "\n" not in str(caught.value)


def test_weights_of_another_network_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "other.pth"
    torch.save(timm.create_model("resnet10t").state_dict(), path)
    with pytest.raises(LDLError, match="mobilenetv2_035") as caught:
        Timm(SMALL, weights=str(path)).build((3, 32, 32))
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def weights(ldl_data: Path) -> Path:
    path = ldl_data.parent / "weights" / "mobilenetv2_100.imagenet1k.safetensors"
    if not path.is_file():
        pytest.skip(f"no weights at {path}")
    return path


def test_a_weights_file_is_loaded(weights: Path) -> None:
    saved = load_file(weights)
    backbone = Timm("mobilenetv2_100", weights=str(weights))
    assert backbone.build((3, 64, 64)) == 1280
    loaded = backbone.network.state_dict()
    assert set(saved) - set(loaded) == {"classifier.weight", "classifier.bias"}
    assert all(torch.equal(tensor, saved[name]) for name, tensor in loaded.items() if "num_batches" not in name)


def test_a_checkpoint_needs_no_weights_file(weights: Path, tmp_path: Path) -> None:
    backbone = Timm("mobilenetv2_100", weights=str(tmp_path / "moved.safetensors"))
    assert backbone.build((3, 64, 64), load_weights=False) == 1280
    original = Timm("mobilenetv2_100", weights=str(weights))
    original.build((3, 64, 64))
    backbone.load_state_dict(original.state_dict())


def test_weights_fit_grey_images_too(weights: Path) -> None:
    grey, colour = (Timm("mobilenetv2_100", weights=str(weights), freeze=True) for _ in range(2))
    grey.build((1, 64, 64))
    colour.build((3, 64, 64))
    images = torch.rand(2, 1, 64, 64)
    torch.testing.assert_close(grey(images), colour(images.expand(-1, 3, -1, -1)), rtol=1e-3, atol=1e-3)
