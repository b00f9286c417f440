"""Networks on every instance of a bag: what is missing stays missing, and gradients reach the network."""

from __future__ import annotations

import pytest
import torch

from ldl.backbones.base import Identity
from ldl.backbones.each_instance import EachInstance
from ldl.backbones.haar import Haar
from ldl.backbones.pixel_features import PixelFeatures
from ldl.backbones.timm import Timm
from ldl.errors import LDLError
from ldl.heads import Bagged, Softmax
from ldl.labels import LabelSpace
from ldl.task import Task

LABELS = LabelSpace.nominal(["negative", "positive"])


def test_every_instance_is_seen_as_if_alone() -> None:
    backbone = EachInstance(Identity(flatten=True))
    assert backbone.build((-1, 2, 3)) == 6 and backbone.gives_bags
    inputs = torch.randn(4, 5, 2, 3)
    inputs[1, 3:] = torch.nan
    features = backbone(inputs)
    torch.testing.assert_close(features, inputs.flatten(2), equal_nan=True)


def test_a_network_learns_from_bags_of_pictures() -> None:
    """Bright pictures make a bag positive; only bags have labels."""
    torch.manual_seed(0)
    inputs = 0.1 * torch.randn(24, 3, 3, 32, 32)
    label = torch.arange(24) % 2
    inputs[label == 1, 0] += 2
    inputs[:6, 2] = torch.nan
    task = Task(Bagged(Softmax(), "nor"), EachInstance(Timm("test_resnet")))
    task.build(LABELS, (-1, 3, 32, 32))
    optimizer = torch.optim.Adam(task.parameters(), 3e-3)
    target = torch.eye(2)[label]
    losses = []
    for _ in range(15):
        loss = task.head.loss(task.features({"input": inputs}), target)["loss"]
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in task.parameters())
        optimizer.step()
        losses.append(float(loss.detach()))
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in task.backbone.parameters())
    assert losses[-1] < 0.3 < losses[0]


def test_what_is_no_bag_is_refused() -> None:
    with pytest.raises(LDLError, match=r"EachInstance needs bags \(instances, ...\), got inputs of shape \(7,\)"):
        EachInstance().build((7,))
    with pytest.raises(LDLError, match="must make one instance of one input, not a bag"):
        EachInstance(Haar(window=4)).build((2, 1, 8, 8))
    with pytest.raises(LDLError, match="^EachInstance.backbone PixelFeatures gives features at every pixel"):
        EachInstance(PixelFeatures(pretrained=False)).build((2, 3, 32, 32))
