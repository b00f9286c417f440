"""Identity, backbones of bags, Haar and HOG: features against plain references, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from skimage.feature import hog
from torch import Tensor

from ldl.backbones import HOG, Haar, Identity, Timm
from ldl.bags import EachInstance
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.spec import from_spec, to_spec

LABELS = LabelSpace.nominal(["negative", "positive"])


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


def _haar(shape: tuple[int, int, int], **options: object) -> Haar:
    haar = Haar(**{"pool": 30, "seed": 0, **options})  # type: ignore[arg-type]
    assert haar.build(shape) == haar.pool
    return haar


def _pictures(*shape: int) -> Tensor:
    return torch.randint(256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def _plain(haar: Haar, window: np.ndarray) -> list[float]:
    """Return all features of one window (channels, height, width), pixel by pixel."""
    return [
        sum(
            float(weight) * window[channel, top:bottom, left:right].mean()
            for (channel, top, left, bottom, right), weight in zip(corners, weights)
            if weight
        )
        for corners, weights in zip(haar.corners.numpy(), haar.weights.numpy())
    ]


@pytest.mark.parametrize("channels", [1, 3])
def test_features_of_a_whole_picture_are_sums_of_mean_brightness(channels: int) -> None:
    haar, pictures = _haar((channels, 9, 13)), _pictures(3, channels, 9, 13)
    assert not haar.gives_bags and haar.is_frozen
    expected = [_plain(haar, picture) for picture in pictures.numpy() / 255]
    torch.testing.assert_close(haar(pictures), torch.tensor(expected).float(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("stride", [1, 3])
def test_windows_run_row_by_row_with_the_same_features(stride: int) -> None:
    pictures = _pictures(2, 1, 12, 17)
    haar, whole = _haar((1, 12, 17), window=8, stride=stride), _haar((1, 8, 8))
    rows, columns = haar.grid((1, 12, 17))
    assert haar.gives_bags and (rows, columns) == (4 // stride + 1, 9 // stride + 1)
    windows = [
        pictures[:, :, y : y + 8, x : x + 8]
        for y in range(0, rows * stride, stride)
        for x in range(0, columns * stride, stride)
    ]
    torch.testing.assert_close(haar(pictures), torch.stack([whole(window) for window in windows], 1), atol=1e-6, rtol=0)


def test_rectangles_lie_in_the_window_and_are_no_longer_than_allowed() -> None:
    haar = _haar((1, 40, 40), window=20, pool=2000, largest=0.4)
    _, top, left, bottom, right = haar.corners.numpy().transpose(2, 0, 1)
    for start, end in ((top, bottom), (left, right)):
        assert start.min() == 0 and end.max() == 20
        assert set(np.unique(end - start)) == set(range(1, 9))
    used = (haar.weights != 0).sum(1)
    assert set(used.tolist()) == {2, 3, 4}
    assert haar.weights.abs().max() <= 1


def test_seed_and_state_determine_the_features() -> None:
    pictures = _pictures(2, 1, 10, 10)
    first, other = _haar((1, 10, 10)), _haar((1, 10, 10), seed=1)
    assert torch.equal(first(pictures), _haar((1, 10, 10))(pictures))
    assert not torch.equal(first(pictures), other(pictures))
    again = from_spec(to_spec(other), Haar)
    again.build((1, 10, 10))
    again.load_state_dict(other.state_dict())
    assert torch.equal(again(pictures), other(pictures))


def test_windows_are_taken_of_any_picture_that_holds_one() -> None:
    haar = _haar((1, 12, 12), window=8, stride=4)
    larger = _pictures(2, 1, 16, 12)
    torch.testing.assert_close(haar(larger)[:, :4], haar(larger[:, :, :12]))
    for shape in ((1, 7, 12), (2, 12, 12)):
        with pytest.raises(LDLError, match=r"^Haar was built for images of at least 8x8 pixels in 1 channels, got"):
            haar(_pictures(2, *shape))


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 16, 24), (3, 37, 20)])
def test_features_are_those_of_scikit_image(channels: int, height: int, width: int) -> None:
    backbone = HOG(orientations=6, cell=5, block=3)
    count = backbone.build((channels, height, width))
    images = torch.randint(0, 256, (3, channels, height, width), dtype=torch.uint8)
    features = backbone(images)
    assert features.shape == (3, count) and features.dtype == torch.float32
    for image, row in zip(images, features):
        # In the same precision, because rounding may decide which of two channels has the larger gradient.
        pixels = image.permute(1, 2, 0).float().numpy() / 255
        expected = hog(pixels, 6, (5, 5), (3, 3), transform_sqrt=True, channel_axis=-1)
        np.testing.assert_allclose(row.numpy(), expected, atol=1e-5)
    assert backbone.is_frozen and not backbone.state_dict()
    assert backbone(images[:0]).shape == (0, count)


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
