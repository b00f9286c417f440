"""Histograms of oriented gradients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.errors import LDLError
from ldl.options import option, options


@options
class HOG(Backbone):
    """Histograms of oriented gradients (Dalal & Triggs, CVPR 2005), computed by scikit-image.

    Nothing is trained, so features are computed once for all folds and heads. Among several channels, the strongest
    gradient counts at every pixel. Blocks overlap by all but one cell and are normalised by L2-Hys.

    Args:
        orientations: Bins of the gradient's direction over 180 degrees, without sign.
        cell: Side of a cell in pixels; a remainder at the right and at the bottom is not used.
        block: Side of a normalised block, in cells.
        root: Take square roots of the pixels first, which reduces effects of illumination.

    Examples:
        >>> import torch
        >>> from ldl.backbones import HOG
        >>> backbone = HOG(cell=4)
        >>> backbone.build((1, 12, 12))
        144
        >>> backbone(torch.zeros(2, 1, 12, 12)).shape
        torch.Size([2, 144])
    """

    no_graph: ClassVar[str] = "its histograms are scikit-image's, not torch's"
    is_frozen = True

    orientations: int = option(default=9, least=1)
    cell: int = option(default=8, least=1)
    block: int = option(default=2, least=1)
    root: bool = True

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Return the number of features of images (channels, height, width). Raises LDLError."""
        self.check_images(input_shape)
        if min(input_shape[1:]) < (least := self.cell * self.block):
            height, width = input_shape[1:]
            raise LDLError(
                f"images of {height}x{width} are smaller than a block of HOG, {least}x{least}; lower "
                "model.backbone.cell or block, or use larger images"
            )
        return self._count(input_shape)

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Map images (B, channels, height, width) to (B, F) float32. Negative pixels have no ``root``."""
        from skimage.feature import hog  # takes half a second to import

        images = inputs.float().cpu().numpy() / (255 if inputs.dtype == torch.uint8 else 1)
        cell, block = (self.cell, self.cell), (self.block, self.block)
        features = np.empty((len(images), self._count(images.shape[1:])), np.float32)
        for row, image in enumerate(images):
            features[row] = hog(image, self.orientations, cell, block, transform_sqrt=self.root, channel_axis=0)
        return torch.from_numpy(features).to(inputs.device)

    def _count(self, shape: tuple[int, ...]) -> int:
        down, across = (side // self.cell - self.block + 1 for side in shape[1:])
        return down * across * self.block**2 * self.orientations
