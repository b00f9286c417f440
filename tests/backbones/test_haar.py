"""Haar: features against plain references, windows, seeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.backbones import Haar
from ldl.errors import LDLError
from ldl.spec import from_spec, to_spec


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
