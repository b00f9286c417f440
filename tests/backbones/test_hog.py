"""HOG against scikit-image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skimage.feature import hog

from ldl.backbones import HOG


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
