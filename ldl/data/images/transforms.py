"""albumentations pipelines whose randomness depends only on the seed of each image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import albumentations as A
import cv2
import numpy as np
import torch
from torch import Tensor

from ldl.errors import ANY_ERROR, LDLError, explaining

Transform: TypeAlias = A.BasicTransform | A.BaseCompose

MAX_CHANNELS = 4
"""Largest number of channels. An output with more channels, and at most so many rows, counts as channels first."""
MAX_NUMBER = 2**14
"""Largest number in the transforms of a checkpoint, such as the side of an image."""
TRANSFORMS_FIX = "correct data.train_transforms or data.eval_transforms"
"""Advice if a transform fails."""


def default_train_transforms(mirror: bool = True) -> list[Transform]:
    """Return small rotations, shifts and scales, brightness and contrast, and sometimes grey or low resolution.

    ``mirror`` adds a horizontal flip with probability 0.5.
    """
    return [
        *_geometry(mirror, scale=0.1, shift=0.06, degrees=12),
        A.RandomBrightnessContrast(brightness_limit=0.2, contrast_limit=0.3, p=0.6),
        A.ToGray(p=0.15),
        A.Downscale(scale_range=(0.4, 0.9), p=0.15),
    ]


def strong_train_transforms(mirror: bool = True) -> list[Transform]:
    """Return transforms for long training.

    Larger rotations, shifts and scales, two of nine changes of colour and detail as in RandAugment (Cubuk et al. 2020),
    sometimes grey, and a rectangle of one colour (random erasing, Zhong et al. 2020).
    """
    changes: list[Transform] = [
        A.RandomBrightnessContrast(brightness_limit=0.25, contrast_limit=0.35, p=1),
        A.ColorJitter(brightness=(1, 1), contrast=(1, 1), saturation=(0.4, 1.6), hue=(-0.03, 0.03), p=1),
        A.RandomGamma(gamma_limit=(70, 140), p=1),
        A.RGBShift(r_shift_limit=30, g_shift_limit=20, b_shift_limit=30, p=1),  # old prints are red or brown
        A.GaussNoise(std_range=(0.02, 0.06), p=1),
        A.Downscale(scale_range=(0.35, 0.9), p=1),
        A.GaussianBlur(blur_limit=(3, 5), p=1),
        A.ImageCompression(quality_range=(25, 90), p=1),
        A.Sharpen(alpha=(0.1, 0.4), p=1),
    ]
    hole_side = (0.15, 0.4)
    return [
        *_geometry(mirror, scale=0.15, shift=0.08, degrees=15),
        A.SomeOf(changes, n=2, replace=False, p=0.8),
        A.ToGray(p=0.15),
        A.CoarseDropout(
            num_holes_range=(1, 1),
            hole_height_range=hole_side,
            hole_width_range=hole_side,
            fill="random_uniform",
            p=0.3,
        ),
    ]


def _geometry(mirror: bool, scale: float, shift: float, degrees: float) -> list[Transform]:
    affine = A.Affine(
        scale=(1 - scale, 1 + scale),
        translate_percent=(-shift, shift),
        rotate=(-degrees, degrees),
        border_mode=cv2.BORDER_REFLECT_101,
        p=0.9,
    )
    return [A.HorizontalFlip(p=0.5), affine] if mirror else [affine]


AUGMENTATIONS: dict[str, Callable[[bool], list[Transform]]] = {
    "light": default_train_transforms,
    "strong": strong_train_transforms,
    "none": lambda mirror: [],
}
"""Training transforms by the value of ``data.augmentation``."""


def check_crops(preprocessing: dict[str, Any]) -> tuple[int, float | None]:
    """Return size and margin of the crops that a checkpoint describes. Raises LDLError if they are out of range."""
    size, margin = preprocessing.get("crop_size"), preprocessing.get("margin")
    if not (type(size) is int and 8 <= size <= 4096 and (margin is None or 0 <= margin <= 2)):
        raise LDLError(f"the checkpoint's crops of {size!r} pixels with a margin of {margin!r} cannot be made")
    if (alignment := preprocessing.get("alignment")) not in (None, "landmarks", "box", "none"):
        raise LDLError(f"the checkpoint's faces were placed by {alignment!r}; landmarks, box and none are known")
    return size, margin


class Pipeline:
    """Apply albumentations transforms in turn to images (height, width, 3) uint8, giving (height, width, channels).

    Args:
        transforms: The transforms.
        channels: 1 converts the transformed RGB images to grey; 3 leaves them.
    """

    def __init__(self, transforms: Sequence[Transform], channels: int = 3) -> None:
        self.transforms, self.channels = list(transforms), channels

    def __call__(self, picture: np.ndarray, seed: int) -> np.ndarray:
        """Return the transformed image, the same for the same ``seed`` in any process."""
        for number, transform in enumerate(self.transforms):
            # One seed for all transforms would couple them: every mirrored image would also rotate to the left.
            transform.set_random_seed((seed * 1000003 + number) % 2**32)
            name, shape = type(transform).__name__, "x".join(map(str, picture.shape))
            with explaining(f"transform {name} cannot take an image of {shape}", TRANSFORMS_FIX):
                picture = transform(image=picture)["image"]
        if self.channels == 1 and picture.ndim == 3 and picture.shape[2] == 3:
            picture = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)[:, :, None]
        return picture

    def batch(self, pictures: Sequence[np.ndarray], seeds: np.ndarray) -> Tensor:
        """Return transformed images, (B, channels, height, width), each with its own seed. Raises LDLError."""
        transformed = [self(picture, int(seed)) for picture, seed in zip(pictures, seeds)]
        shapes = {tuple(picture.shape) for picture in transformed}
        if len(shapes) > 1:
            examples = " and ".join(map(str, sorted(shapes)[:2]))
            raise LDLError(
                f"image transforms give images of several sizes, such as {examples}, which make no batch; "
                "end them with Resize, or with a crop of one size"
            )
        (shape,) = shapes
        if len(shape) != 3 or shape[2] > MAX_CHANNELS >= shape[0]:
            raise LDLError(
                f"image transforms give shape {shape}, channels first, as ToTensorV2 does; leave it out: they must "
                "give (height, width, channels), and ldl makes the tensors"
            )
        stacked = np.stack(transformed)
        if stacked.dtype == np.float64:  # as from Normalize with the mean of each image
            stacked = stacked.astype(np.float32)
        # The strides stay channels last, which convolutions prefer.
        return torch.from_numpy(stacked).permute(0, 3, 1, 2)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint; :meth:`from_dict` is the inverse."""
        return A.to_dict(A.Compose(self.transforms))

    @classmethod
    def from_dict(cls, state: dict[str, Any], channels: int = 3) -> Pipeline:
        """Rebuild a pipeline. Raises LDLError for unknown transforms, or numbers beyond ``MAX_NUMBER``."""
        problem = f"the checkpoint's image transforms cannot be rebuilt with albumentations {A.__version__}"
        with explaining(problem, errors=ANY_ERROR):
            if (largest := _largest_number(state)) > MAX_NUMBER:
                raise ValueError(f"they use {largest}, and at most {MAX_NUMBER} pixels are allowed")
            return cls(A.from_dict(state).transforms, channels)


def _largest_number(state: Any) -> float:
    if isinstance(state, dict | list | tuple):
        return max(map(_largest_number, state.values() if isinstance(state, dict) else state), default=0)
    return abs(state) if isinstance(state, int | float) else 0
