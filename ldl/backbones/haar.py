"""Random rectangle features of images and of windows in them (Dollar et al. 2007; Viola & Jones 2001)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.batch import run_seed
from ldl.errors import LDLError
from ldl.methods.numba_kernels import compiled
from ldl.moved import old_names
from ldl.options import buffer, option, options
from ldl.validation.tensors import check_numbers, check_range

__getattr__ = old_names(__name__)

MOST_RECTANGLES = 4
"""Maximum number of rectangles of a feature, which has at least two."""


@options
class Haar(Backbone):
    """Random Haar features: weighted sums of the mean brightness of two to four random rectangles.

    An image, or every window of it, has ``pool`` features. Sizes, places, channels and weights are drawn once from
    uniform distributions, the weights from [-1, 1]. One integral image serves all windows of an image. There are no
    gradients, and the CPU computes the features.

    With ``window``, the features are a bag of instances, (B, J, F). Windows run row by row, and an image of H x W has
    J = rows * columns windows in (H - window) // stride + 1 rows. Without ``window``, the features are (B, F).

    Args:
        pool: F, the number of features.
        window: Side of the windows in pixels; None uses the whole image.
        stride: Pixels between windows.
        largest: Longest side of a rectangle, as a share of the window, in (0, 1].
        balanced: Weights of a feature sum to 0, so that uniform brightness gives 0.
        seed: Seed of the features; None uses the run's seed.

    Examples:
        >>> import torch
        >>> from ldl.backbones import Haar
        >>> backbone = Haar(pool=10, window=8, stride=2)
        >>> backbone.build((1, 12, 12))
        10
        >>> backbone(torch.zeros(2, 1, 12, 12)).shape  # 3 x 3 windows
        torch.Size([2, 9, 10])
    """

    no_graph: ClassVar[str] = "its sums over rectangles are compiled code, not torch's"
    is_frozen = True
    corners: Tensor = buffer()
    weights: Tensor = buffer()

    pool: int = option(default=1000, least=1, most=10**6)
    window: int | None = None
    stride: int = option(default=1, least=1)
    largest: float = option(default=0.5, above=0, most=1, what="a share of the window")
    balanced: bool = False
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's seed")

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Draw the features for images (channels, height, width). Raises LDLError."""
        self.check_images(input_shape)
        most = min(input_shape[1:])
        if self.window is not None and not 1 <= self.window <= most:
            raise LDLError(f"Haar.window {self.window!r} must be in 1..{most} pixels, or null for the whole image")
        self.gives_bags = self.window is not None
        sides = input_shape[1:] if self.window is None else (self.window, self.window)
        rng = np.random.default_rng(run_seed(self.seed))
        corners, weights = _draw(self.pool, input_shape[0], sides, self.largest, rng)
        if self.balanced:
            used = weights != 0
            weights -= used * (weights.sum(1) / used.sum(1))[:, None]
        self._sides = input_shape[0], *sides
        self.register_buffer("corners", torch.from_numpy(corners))
        self.register_buffer("weights", torch.from_numpy(weights).float())
        return self.pool

    def check_state(self) -> None:
        """Raise LDLError for a rectangle that is empty or not inside the window."""
        channel, top, left, bottom, right = self.corners.unbind(-1)
        for numbers, least, below in (
            (channel, 0, self._sides[0]), (top, 0, self._sides[1]), (left, 0, self._sides[2]),
            (bottom - top, 1, self._sides[1] + 1), (right - left, 1, self._sides[2] + 1),
            (bottom, 1, self._sides[1] + 1), (right, 1, self._sides[2] + 1),
        ):  # fmt: skip
            check_range(self, "corners", numbers, below, least)
        check_numbers(self, "weights", self.weights)

    def grid(self, input_shape: tuple[int, ...]) -> tuple[int, int]:
        """Return rows and columns of windows in images (channels, height, width); 1, 1 without ``window``."""
        if self.window is None:
            return 1, 1
        rows, columns = ((side - self.window) // self.stride + 1 for side in input_shape[1:])
        return rows, columns

    def boxes(self, input_shape: tuple[int, ...]) -> Tensor | None:
        """Return the windows, row by row; None without ``window``."""
        if self.window is None:
            return None
        corners = torch.cartesian_prod(*(self.stride * torch.arange(count) for count in self.grid(input_shape)))
        return torch.cat([corners, corners + self.window], 1)

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Map images (B, channels, H, W), uint8 or float, to features (B, F), or (B, J, F) with ``window``; float32.

        The values 0 to 255 of uint8 images become 0 to 1. Raises LDLError for other channels or sides than in
        ``build``; with ``window``, any sides that hold a window are valid.
        """
        self._check_shape(tuple(inputs.shape[1:]))
        images = inputs.cpu().double().numpy() / (255 if inputs.dtype == torch.uint8 else 1)
        table = np.zeros((*images.shape[:2], images.shape[2] + 1, images.shape[3] + 1))
        table[:, :, 1:, 1:] = images.cumsum(2).cumsum(3)
        rows, columns = self.grid(tuple(inputs.shape[1:]))
        features = np.empty((len(images), rows * columns, self.pool), np.float32)
        flat = table.reshape(len(table), math.prod(table.shape[1:]))
        _sum_points(flat, *self._points(table.shape), columns, self.stride, features)
        output = torch.from_numpy(features).to(inputs.device)
        return output[:, 0] if self.window is None else output

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        channels, height, width = self._sides
        holds_windows = self.window and len(shape) == 3 and shape[0] == channels and min(shape[1:]) >= self.window
        if shape != self._sides and not holds_windows:
            least = "at least " if self.window else ""
            raise LDLError(
                f"Haar was built for images of {least}{height}x{width} pixels in {channels} channels, "
                f"got inputs of shape {shape}; resize the images"
            )

    def _points(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, int]:
        """Return positions (F, 16) in a flat integral image (B, *shape[1:]), their coefficients, and its row length."""
        channel, top, left, bottom, right = self.corners.cpu().numpy().transpose(2, 0, 1)
        mean = self.weights.cpu().double().numpy() / ((bottom - top) * (right - left))
        positions = [
            (channel * shape[2] + y) * shape[3] + x
            for y, x in ((bottom, right), (top, left), (top, right), (bottom, left))
        ]
        return np.concatenate(positions, 1), np.concatenate([mean, mean, -mean, -mean], 1), shape[3]


def _draw(
    pool: int, channels: int, sides: tuple[int, ...], largest: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return channel, top, left, bottom, right of the rectangles, (F, 4, 5), and weights (F, 4), 0 for unused ones."""
    corners = np.empty((pool, MOST_RECTANGLES, 5), np.int64)
    corners[..., 0] = rng.integers(channels, size=(pool, MOST_RECTANGLES))
    for axis, side in enumerate(sides):
        length = rng.integers(1, max(1, round(largest * side)) + 1, (pool, MOST_RECTANGLES))
        start = rng.integers(side - length + 1)
        corners[..., 1 + axis], corners[..., 3 + axis] = start, start + length
    weights = rng.uniform(-1, 1, (pool, MOST_RECTANGLES))
    weights[np.arange(MOST_RECTANGLES) >= rng.integers(2, MOST_RECTANGLES + 1, pool)[:, None]] = 0
    return corners, weights


@compiled
def _sum_points(
    table: np.ndarray, positions: np.ndarray, coefficients: np.ndarray, width: int, columns: int, stride: int,
    features: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``features`` (B, J, F) with weighted sums of ``table`` (B, ...) at ``positions`` (F, P) of every window."""
    for image in range(features.shape[0]):
        for window in range(features.shape[1]):
            sums = table[image, (window // columns * width + window % columns) * stride :]
            for feature in range(features.shape[2]):
                total = 0.0
                for point in range(positions.shape[1]):
                    total += coefficients[feature, point] * sums[positions[feature, point]]
                features[image, window, feature] = total
