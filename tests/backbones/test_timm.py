"""What ``Timm`` adds to timm: weights at hand, frozen groups, mirror images, pictures in uint8, compilation."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import pytorch_lightning as pl
import timm
import torch
from fake_faces import utkface
from small_tasks import EMOTIONS, saved

from ldl.backbones import timm_network as module
from ldl.backbones.timm import Timm
from ldl.backbones.timm_network import local_weights
from ldl.data import UTKFace
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


def _pictures() -> torch.Tensor:
    return torch.randint(0, 256, (4, *SHAPE), generator=torch.Generator().manual_seed(1)).to(torch.uint8)


def test_pictures_are_normalised_as_the_weights_expect() -> None:
    backbone = _build().eval()
    config = backbone.network.pretrained_cfg
    mean, std = (torch.tensor(config[name]).reshape(3, 1, 1) for name in ("mean", "std"))
    torch.testing.assert_close(backbone(_pictures()), backbone((_pictures() / 255 - mean) / std), atol=1e-4, rtol=1e-4)


def test_normalisation_of_other_numbers_of_channels() -> None:
    backbone = Timm(SMALL)
    backbone.build((1, 32, 32))
    assert backbone.eval()(_pictures()[:, :1]).isfinite().all()
    assert backbone.mean.flatten().tolist() == [pytest.approx(255 * sum((0.485, 0.456, 0.406)) / 3, rel=1e-4)]


def test_mirror_images_give_equal_features_in_evaluation_alone() -> None:
    backbone = _build(mirror=True).eval()
    plain = _build().eval()
    torch.testing.assert_close(backbone(_pictures()), backbone(_pictures().flip(-1)), atol=1e-5, rtol=1e-5)
    expected = (plain(_pictures()) + plain(_pictures().flip(-1))) / 2
    torch.testing.assert_close(backbone(_pictures()), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(backbone.train()(_pictures()), plain.train()(_pictures()))


@pytest.mark.parametrize("enlarge", [2.0, 1.5])
def test_the_network_sees_enlarged_images(enlarge: float) -> None:
    side = int(32 * enlarge)
    larger = torch.nn.functional.interpolate(_pictures().float(), (side, side), mode="bilinear")
    backbone, plain = _build(enlarge=enlarge).eval(), _build().eval()
    scaled = (larger - plain.mean) / plain.std
    torch.testing.assert_close(backbone(_pictures()), plain(scaled), atol=1e-4, rtol=1e-4)


def test_a_network_of_one_size_takes_images_enlarged_to_it() -> None:
    assert Timm("vit_tiny_patch16_224", enlarge=2).build((3, 112, 112)) == 192


@pytest.mark.parametrize("groups", [1, 5])
def test_the_first_groups_keep_weights_and_statistics(groups: int) -> None:
    backbone = _build(freeze_groups=groups)
    before = copy.deepcopy(backbone.state_dict())
    backbone.train()
    optimizer = torch.optim.SGD([p for p in backbone.parameters() if p.requires_grad], lr=0.1)
    backbone(_pictures()).square().sum().backward()
    optimizer.step()
    after = backbone.state_dict()
    same = {name for name in before if torch.equal(before[name], after[name]) and name.endswith((".weight", "_mean"))}
    assert "network.conv_stem.weight" in same and "network.bn1.running_mean" in same
    assert "network.conv_head.weight" not in same and "network.bn2.running_mean" not in same
    # The stem is the first group, and each block one more.
    assert ("network.blocks.1.0.conv_pw.weight" in same) == (groups == 5)
    assert not backbone.is_fixed


def test_fixed_layers_drop_nothing() -> None:
    backbone = Timm("test_resnet", freeze_groups=3, drop_path_rate=0.9)
    backbone.build(SHAPE)
    drops = {name: module.training for name, module in backbone.train().named_modules() if name.endswith("drop_path")}
    assert drops == {f"network.layer{layer}.0.drop_path": layer > 2 for layer in (2, 3, 4)}


def test_tokens_and_positions_belong_to_the_fixed_stem() -> None:
    backbone = Timm("test_vit", freeze_groups=2)
    backbone.build((3, 160, 160))
    learns = {name for name, parameter in backbone.network.named_parameters() if parameter.requires_grad}
    assert not [name for name in learns if name.startswith(("cls_token", "pos_embed", "patch_embed", "blocks.0."))]
    assert "blocks.1.attn.qkv.weight" in learns


def test_frozen_statistics_stay_while_scales_learn() -> None:
    backbone, plain = _build(freeze_statistics=True), _build()
    torch.testing.assert_close(backbone.train()(_pictures()), plain.eval()(_pictures()))
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    backbone(_pictures()).square().sum().backward()
    torch.optim.SGD(backbone.parameters(), 1e-2).step()
    changed = {name for name, value in backbone.state_dict().items() if not torch.equal(value, before[name])}
    assert not [name for name in changed if "running" in name or "num_batches" in name]
    assert {"network.bn1.weight", "network.bn1.bias", "network.conv_stem.weight"} <= changed
    assert not torch.allclose(plain.train()(_pictures()), backbone(_pictures()))


def test_frozen_statistics_of_a_network_that_has_none_are_refused() -> None:
    with pytest.raises(LDLError, match="convnext_atto normalises by no statistics of batches; leave it out"):
        Timm("convnext_atto", freeze_statistics=True).build(SHAPE)


def test_too_many_groups_are_refused() -> None:
    with pytest.raises(
        LDLError, match=r"freeze_groups 99 must be in 0\.\.\d+, the groups of layers of mobilenetv2_035"
    ):
        _build(freeze_groups=99)


def test_compiling_changes_neither_checkpoints_nor_copies() -> None:
    backbone = _build(compiled=True)
    backbone._compiled = lambda inputs: pytest.fail("must not be used in evaluation")
    assert list(backbone.state_dict()) == list(_build().state_dict())
    torch.testing.assert_close(backbone.eval()(_pictures()), _build().eval()(_pictures()))
    assert pickle.loads(pickle.dumps(backbone))._compiled is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_training_step_is_compiled_on_cuda_alone(
    device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def compile_(function: object) -> object:
        calls.append(function)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    backbone = _build(compiled=True).train()
    if device == "cuda":
        backbone._compiled = backbone._compile(torch.device("cuda"))
    for _ in range(2):
        backbone(_pictures())
    assert len(calls) == (device == "cuda")
    (line,) = capsys.readouterr().out.splitlines()
    said = "is compiled: a minute or so before" if device == "cuda" else "is not compiled: no CUDA here"
    assert line.startswith(f"Timm.compiled: {SMALL} {said}")


@pytest.mark.parametrize("place", ["LDL_WEIGHTS", "LDL_DATA"])
def test_weights_at_hand_need_no_hub(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import save_file

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


def test_auto_goes_on_without_weights_and_asks_the_hub_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    with pytest.warns(UserWarning, match=f"no pretrained weights of {SMALL} at hand or on the hub"):
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


def test_a_run_gives_its_backbone_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    data = UTKFace(root=str(utkface(tmp_path, 12)), crop_size=32, protocol="holdout", val_fraction=0)
    task = Task(Softmax(), Timm(SMALL))
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = pl.Trainer(max_epochs=1, default_root_dir=tmp_path, **quiet)  # type: ignore[arg-type]
    trainer.fit(task, datamodule=data)
    trainer.save_checkpoint(tmp_path / "first.ckpt")
    backbone = _build(weights=str(tmp_path / "first.ckpt"), freeze=True, pretrained="auto")
    expected = task.backbone.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in backbone.state_dict().items())
    with pytest.raises(LDLError, match=f"holds a backbone {SMALL}, not mobilenetv2_050"):
        Timm("mobilenetv2_050", weights=str(tmp_path / "first.ckpt")).build(SHAPE)


def test_a_checkpoint_of_four_channels_gives_its_backbone(tmp_path: Path) -> None:
    task = Task(Softmax(), Timm("test_resnet"))
    task.build(EMOTIONS, (4, 32, 32))
    given = Timm("test_resnet", weights=str(saved(task, tmp_path / "first.ckpt")))
    given.build((4, 32, 32))
    torch.testing.assert_close(given.network.state_dict(), task.backbone.network.state_dict())


def test_a_size_that_the_network_does_not_take_is_refused() -> None:
    with pytest.raises(LDLError, match=r"vit_tiny_patch16_224 does not take images of 3x32x32: .*data\.crop_size"):
        Timm("vit_tiny_patch16_224").build((3, 32, 32))
