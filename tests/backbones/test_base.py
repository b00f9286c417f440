"""Identity, backbones of bags, and inputs that do not fit a backbone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ldl.backbones import HOG, Haar, Identity, Timm
from ldl.bags import EachInstance
from ldl.errors import LDLError


def test_identity_returns_rows_and_flattens_images() -> None:
    assert Identity().build((7,)) == 7
    rows = torch.randn(3, 7)
    assert Identity()(rows) is rows
    backbone = Identity(flatten=True)
    images = torch.randn(3, 2, 4, 5)
    assert backbone.build((2, 4, 5)) == 40
    assert torch.equal(backbone(images), images.reshape(3, 40))


def test_every_instance_has_features_of_its_own() -> None:
    backbone = EachInstance(Identity(flatten=True))
    assert backbone.build((-1, 2, 3)) == 6 and backbone.gives_bags
    inputs = torch.randn(4, 5, 2, 3)
    inputs[1, 3:] = torch.nan
    features = backbone(inputs)
    torch.testing.assert_close(features, inputs.flatten(2), equal_nan=True)


@pytest.mark.parametrize(
    ("backbone", "shape", "message"),
    [
        (Identity(), (1, 12, 12), "inputs of 1x12x12; set model.backbone.flatten: true"),
        (EachInstance(), (7,), r"EachInstance needs bags \(instances, ...\), got inputs of shape \(7,\)"),
        (EachInstance(Haar(window=4)), (2, 1, 8, 8), "Haar must give one row of features per instance"),
        (Timm("test_resnet"), (32, 32, 3), r"got inputs of shape \(32, 32, 3\); permute them in inputs"),
        (Haar(window=11), (1, 10, 12), "Haar.window 11 must be in 1..10 pixels, or null"),
        (Haar(largest=0.0), (1, 10, 12), r"Haar.largest 0.0 must be in \(0, 1\]"),
        (Haar(), (7,), r"Haar needs images .* got inputs of shape \(7,\); use Identity"),
        (HOG(), (3, 15, 40), "images of 15x40 are smaller than a block of HOG, 16x16; lower model.backbone.cell"),
    ],
)
def test_inputs_that_do_not_fit_are_named(backbone: Any, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        backbone.build(shape)
