"""Timm networks as backbones: weights, frozen groups, mirror images, pictures in uint8, compilation, and errors."""

from __future__ import annotations

import copy

import torch

from ldl.backbones.timm import Timm

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


def test_mirror_images_give_equal_features_in_evaluation_alone() -> None:
    backbone = _build(mirror=True).eval()
    plain = _build().eval()
    torch.testing.assert_close(backbone(_pictures()), backbone(_pictures().flip(-1)), atol=1e-5, rtol=1e-5)
    expected = (plain(_pictures()) + plain(_pictures().flip(-1))) / 2
    torch.testing.assert_close(backbone(_pictures()), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(backbone.train()(_pictures()), plain.train()(_pictures()))


def test_the_network_sees_enlarged_images() -> None:
    enlarge, side = 1.5, 48
    larger = torch.nn.functional.interpolate(_pictures().float(), (side, side), mode="bilinear")
    backbone, plain = _build(enlarge=enlarge).eval(), _build().eval()
    scaled = (larger - plain.mean) / plain.std
    torch.testing.assert_close(backbone(_pictures()), plain(scaled), atol=1e-4, rtol=1e-4)


def test_the_first_groups_keep_weights_and_statistics() -> None:
    backbone = _build(freeze_groups=5)
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
    assert "network.blocks.1.0.conv_pw.weight" in same and "network.blocks.2.2.conv_pw.weight" not in same
    assert not backbone.is_frozen


def test_tokens_and_positions_belong_to_the_frozen_stem() -> None:
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
