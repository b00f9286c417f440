"""HOG: gradients fall into the right bins, features are scikit-image's, and they are computed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fake_faces import utkface
from skimage.feature import hog

from ldl.backbones.base import Backbone
from ldl.backbones.hog import HOG
from ldl.backbones.reuse import reuse_features
from ldl.data import UTKFace
from ldl.errors import LDLError
from ldl.spec import from_spec, to_spec


@pytest.mark.parametrize("turn", [22, 67, 112, 157])
def test_a_grating_fills_the_bin_of_its_direction(turn: int) -> None:
    """Four bins of 45 degrees: in all four cells of the block the most mass is where the gradient points."""
    y, x = np.mgrid[:16, :16]
    angle = np.radians(turn)
    grating = 0.5 + 0.5 * np.sin(0.7 * (x * np.cos(angle) + y * np.sin(angle)))
    backbone = HOG(orientations=4, root=False)
    assert backbone.build((1, 16, 16)) == 16
    cells = backbone(torch.tensor(grating)[None, None]).reshape(4, 4)
    assert (cells.argmax(1) == turn // 45).all()
    assert torch.allclose(cells.square().sum(), torch.ones(()), atol=1e-3)


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 16, 24), (3, 37, 20), (3, 64, 64)])
def test_features_are_those_of_scikit_image(channels: int, height: int, width: int) -> None:
    backbone = HOG(orientations=6, cell=5, block=3)
    count = backbone.build((channels, height, width))
    images = torch.randint(0, 256, (3, channels, height, width), dtype=torch.uint8)
    features = backbone(images)
    assert features.shape == (3, count) and features.dtype == torch.float32
    for image, row in zip(images, features):
        # In the same precision: which of two channels has the larger gradient may else be a matter of rounding.
        pixels = image.permute(1, 2, 0).float().numpy() / 255
        expected = hog(pixels, 6, (5, 5), (3, 3), transform_sqrt=True, channel_axis=-1)
        np.testing.assert_allclose(row.numpy(), expected, atol=1e-5)
    assert backbone(images[:0]).shape == (0, count)


def test_light_does_not_change_much() -> None:
    backbone = HOG()
    backbone.build((3, 32, 32))
    images = torch.randint(0, 120, (4, 3, 32, 32), dtype=torch.uint8)
    torch.testing.assert_close(backbone(images), backbone(2 * images), atol=0.01, rtol=0)


def test_it_comes_back_from_its_arguments_and_has_no_parameters() -> None:
    backbone = HOG(orientations=5, root=False)
    again = from_spec(to_spec(backbone), Backbone)  # type: ignore[type-abstract]
    assert isinstance(again, HOG) and to_spec(again) == to_spec(backbone)
    assert backbone.is_fixed and not backbone.state_dict()


def test_features_are_computed_once_and_anew_for_other_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    root = utkface(tmp_path, 12)
    for cell, files in ((8, 1), (8, 1), (4, 2)):
        data = UTKFace(root=str(root), crop_size=32, protocol="holdout", val_fraction=0)
        data.setup()
        backbone = HOG(cell=cell)
        backbone.build(data.input_shape)
        reuse_features(backbone, data, torch.device("cpu"))
        assert len(list((tmp_path / "cache" / "features").glob("*.npy"))) == files
        (batch,) = list(data.whole_dataloader())
        assert data.backbone_features is not None
        assert torch.equal(data.backbone_features, backbone(batch["input"]))


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({}, (7,), r"HOG needs images \(channels, height, width\), got inputs of shape \(7,\)"),
        ({}, (3, 15, 40), "images of 15x40 are smaller than a block of HOG, 16x16; lower model.backbone.cell"),
        ({"cell": 0}, (3, 40, 40), "HOG.cell 0 must be at least 1"),
        ({"orientations": 0}, (3, 40, 40), "HOG.orientations 0 must be at least 1"),
    ],
)
def test_what_it_cannot_see_is_refused(options: dict, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        HOG(**options).build(shape)


def test_negative_pixels_have_no_roots() -> None:
    for root in (True, False):
        backbone = HOG(root=root)
        backbone.build((1, 16, 16))
        images = torch.randn(2, 1, 16, 16)
        if root:
            with pytest.raises(LDLError, match="square roots of negative pixels"):
                backbone(images)
        else:
            assert backbone(images).isfinite().all()
