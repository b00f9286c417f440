"""Networks of timm: where their weights come from, the options that timm gets, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
from fakes.tasks import EMOTIONS, saved
from safetensors.torch import load_file, save_file

from ldl.backbones import timm_network as module
from ldl.backbones.timm import Timm
from ldl.backbones.timm_network import local_weights
from ldl.errors import LDLError
from ldl.heads import Softmax
from ldl.task import Task

SMALL = "mobilenetv2_035"
SHAPE = (3, 32, 32)


def _build(**options: object) -> Timm:
    torch.manual_seed(0)
    backbone = Timm(SMALL, **options)  # type: ignore[arg-type]
    backbone.build(SHAPE)
    return backbone


@pytest.mark.parametrize("place", ["LDL_WEIGHTS", "LDL_DATA"])
def test_local_weights_need_no_hub(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = timm.create_model(SMALL)
    folder = tmp_path / "weights"
    folder.mkdir()
    save_file(network.state_dict(), folder / f"{SMALL}.some_tag.safetensors")
    monkeypatch.delenv("LDL_DATA", raising=False)
    monkeypatch.delenv("LDL_WEIGHTS", raising=False)
    monkeypatch.setenv(place, str(folder if place == "LDL_WEIGHTS" else tmp_path / "data"))
    assert local_weights(SMALL) == folder / f"{SMALL}.some_tag.safetensors"
    assert local_weights(f"{SMALL}.some_tag") == folder / f"{SMALL}.some_tag.safetensors"
    assert local_weights(f"{SMALL}.other_tag") is None
    assert local_weights("mobilenetv2_100") is None
    for pretrained in (True, "auto"):
        backbone = _build(pretrained=pretrained)
        assert torch.equal(backbone.network.conv_head.weight, network.conv_head.weight)
        assert backbone.pretrained_from == str(folder / f"{SMALL}.some_tag.safetensors")
    assert _build().pretrained_from == ""


def test_auto_continues_without_weights_and_queries_the_hub_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LDL_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("LDL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(module, "not_on_hub", set())
    asked, create = [], timm.create_model

    def offline(name: str, pretrained: bool = False, **options: object) -> torch.nn.Module:
        if pretrained:
            asked.append(name)
            raise OSError("no route to the hub")
        return create(name, **options)

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.warns(UserWarning, match=f"no pretrained weights of {SMALL} available"):
        _build(pretrained="auto")
    _build(pretrained="auto")
    for options, said in (({"freeze": True}, "freeze"), ({"freeze_groups": 2}, "freeze_groups 2")):
        with pytest.raises(LDLError, match=rf"^Timm\.{said} would keep random layers: .* LDL_WEIGHTS, or set"):
            _build(pretrained="auto", **options)
        _build(pretrained=False, **options)
        Timm(SMALL, pretrained="auto", **options).build(SHAPE, load_weights=False)
    assert asked == [SMALL]
    with pytest.raises(LDLError, match="timm cannot make mobilenetv2_035: no route to the hub"):
        _build(pretrained=True)


def test_a_checkpoint_of_four_channels_provides_its_backbone(tmp_path: Path) -> None:
    task = Task(Softmax(), Timm("test_resnet"))
    task.build(EMOTIONS, (4, 32, 32))
    path = str(saved(task, tmp_path / "first.ckpt"))
    given = Timm("test_resnet", weights=path, freeze=True, pretrained="auto")
    given.build((4, 32, 32))
    torch.testing.assert_close(given.network.state_dict(), task.backbone.network.state_dict())
    with pytest.raises(LDLError, match="holds a backbone test_resnet, not mobilenetv2_035"):
        Timm(SMALL, weights=path).build(SHAPE)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("resnet10t", {"stem_width": 24, "avg_down": False, "replace_stem_pool": True, "global_pool": "avgmax"}),
        ("resnet50", {"cardinality": 32, "base_width": 4}),
        ("convnext_atto", {"conv_mlp": True, "use_grn": True, "kernel_sizes": 3, "drop_path_rate": 0.1}),
        ("efficientnet_b0", {"bn_eps": 0.001, "bn_momentum": 0.01}),
        ("densenet121", {"growth_rate": 12, "memory_efficient": True}),
    ],
)
def test_options_that_shape_a_network_are_passed_on(name: str, options: dict[str, object]) -> None:
    with torch.device("meta"):
        assert Timm(name, options=options).build((3, 64, 64)) > 0


@pytest.mark.parametrize(
    ("backbone", "shape", "message"),
    [
        (Timm("resnet81"), (3, 32, 32), r"timm has no model 'resnet81'; did you mean 'resnet\d+\w*'\?.*list_models"),
        (Timm(SMALL), (7,), r"Timm needs images .*\(7,\); use Identity"),
        (Timm(SMALL, weights="none.pth"), (3, 32, 32), "no weights file at none.pth; correct model.backbone.weights"),
        (Timm("vgg11", drop_path_rate=0.1), (3, 32, 32), "timm cannot make vgg11"),
        (Timm(SMALL, options={"img_sise": 64}), (3, 32, 32), "timm cannot make .*img_sise"),
        (Timm(SMALL, options={"global_pool": ""}), (3, 32, 32), r"returns maps \(1280, 1, 1\) and no features; .* avg"),
        (Timm(SMALL, options={"in_chans": 4}), (3, 32, 32), "in_chans, which ldl sets itself; leave it"),
        (Timm(SMALL, freeze_groups=99), (3, 32, 32), r"freeze_groups 99 must be in 0\.\.\d+, the groups of layers of"),
    ],
)
def test_wrong_arguments_are_named_in_one_line(backbone: Timm, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LDLError, match=message) as caught:
        backbone.build(shape)
    assert "\n" not in str(caught.value)


def test_a_broken_weights_file_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.pth"
    path.write_bytes(b"no weights")
    with pytest.raises(LDLError, match="broken") as caught:
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


@pytest.mark.parametrize(("classes", "channels"), [(7, 3), (0, 3), (1000, 1)])
def test_the_classifier_of_own_weights_is_left_out(classes: int, channels: int, tmp_path: Path) -> None:
    network = timm.create_model("test_resnet", num_classes=classes, in_chans=channels)
    torch.save(network.state_dict(), tmp_path / "own.pth")
    backbone = Timm("test_resnet", weights=str(tmp_path / "own.pth"))
    backbone.build((channels, 32, 32))
    network.reset_classifier(0)
    torch.testing.assert_close(backbone.network.state_dict(), network.state_dict(), rtol=0, atol=0)
    left_out = f", without its classifier of {classes} classes" if classes == 7 else ""
    assert backbone.pretrained_from == f"{tmp_path / 'own.pth'}{left_out}"
    # Anything else that differs is an error.
    torch.save({**network.state_dict(), "head.scale": torch.ones(1)}, tmp_path / "own.pth")
    with pytest.raises(LDLError, match=r"own.pth holds no weights that fit test_resnet: .*head\.scale"):
        backbone.build((channels, 32, 32))
