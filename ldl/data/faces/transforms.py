"""albumentations pipelines whose randomness comes from the draw, not from the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import albumentations as A
import cv2
import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError

Transform: TypeAlias = A.BasicTransform | A.BaseCompose

LARGEST = 2**14
"""Of the numbers of transforms that a checkpoint names, such as sides of pictures."""


def default_train_transforms(mirror: bool = True) -> list[Transform]:
    """Small turns, shifts and scales, brightness and contrast, now and then grey or coarse; ``mirror`` mirrors half."""
    return [
        *_moves(mirror, scale=0.1, shift=0.06, turn=12),
        A.RandomBrightnessContrast(brightness_limit=0.2, contrast_limit=0.3, p=0.6),
        A.ToGray(p=0.15),
        A.Downscale(scale_range=(0.4, 0.9), p=0.15),
    ]


def strong_train_transforms(mirror: bool = True) -> list[Transform]:
    """For long training: larger turns, shifts and scales, two of nine changes of colour and detail as in RandAugment
    (Cubuk et al. 2020), now and then grey, and a rectangle of one colour (random erasing, Zhong et al. 2020).
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
    side = (0.15, 0.4)
    return [
        *_moves(mirror, scale=0.15, shift=0.08, turn=15),
        A.SomeOf(changes, n=2, replace=False, p=0.8),
        A.ToGray(p=0.15),
        A.CoarseDropout(
            num_holes_range=(1, 1), hole_height_range=side, hole_width_range=side, fill="random_uniform", p=0.3
        ),
    ]


def _moves(mirror: bool, scale: float, shift: float, turn: float) -> list[Transform]:
    """A mirror image of every second picture, and scales, shifts (shares of the side) and turns (degrees) of most."""
    moved = A.Affine(
        scale=(1 - scale, 1 + scale),
        translate_percent=(-shift, shift),
        rotate=(-turn, turn),
        border_mode=cv2.BORDER_REFLECT_101,
        p=0.9,
    )
    return [A.HorizontalFlip(p=0.5), moved] if mirror else [moved]


AUGMENTATIONS = {"light": default_train_transforms, "strong": strong_train_transforms}
"""Training transforms by the name that ``data.augmentation`` takes."""


def check_crops(preprocessing: dict[str, Any]) -> tuple[int, float | None]:
    """Side and margin of the crops that a checkpoint describes. Raises LDLError for those that cannot be made."""
    size, margin = preprocessing.get("crop_size"), preprocessing.get("margin")
    if not (type(size) is int and 8 <= size <= 4096 and (margin is None or 0 <= margin <= 2)):
        raise LDLError(f"the checkpoint's crops of {size!r} pixels with a margin of {margin!r} cannot be made")
    if (alignment := preprocessing.get("alignment")) not in (None, "landmarks", "box", "none"):
        raise LDLError(f"the checkpoint's faces were placed by {alignment!r}; landmarks, box and none are known")
    return size, margin


def _largest(state: Any) -> float:
    """The largest number of a pipeline."""
    if isinstance(state, dict | list | tuple):
        return max(map(_largest, state.values() if isinstance(state, dict) else state), default=0)
    return abs(state) if isinstance(state, int | float) else 0


class Pipeline:
    """Applies albumentations transforms in turn to pictures (height, width, 3) uint8, to (height, width, channels)."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = list(transforms)

    def __call__(self, picture: np.ndarray, seed: int) -> np.ndarray:
        """The transformed picture; the same for the same ``seed``, in any process."""
        for number, transform in enumerate(self.transforms):
            # One seed for all would couple them: whatever is mirrored would also be turned to the left.
            transform.set_random_seed((seed * 1000003 + number) % 2**32)
            try:
                picture = transform(image=picture)["image"]
            except Exception as error:  # those of albumentations and OpenCV have no common base
                shape, reason = "x".join(map(str, picture.shape)), " ".join(str(error).split())[:160]
                raise LDLError(
                    f"transform {type(transform).__name__} cannot take a picture of {shape}: {reason}; correct "
                    "data.train_transforms or data.eval_transforms"
                ) from error
        return picture

    def batch(self, pictures: Sequence[np.ndarray], seeds: np.ndarray) -> Tensor:
        """Transformed pictures, (B, channels, height, width), each with a seed of its own. Raises LDLError."""
        made = [self(picture, int(seed)) for picture, seed in zip(pictures, seeds)]
        if len(shapes := {picture.shape for picture in made}) > 1:
            such = " and ".join(map(str, sorted(shapes)[:2]))
            raise LDLError(
                f"picture transforms give pictures of several sizes, such as {such}, which make no batch; "
                "end them with Resize, or with a crop of one size"
            )
        done = np.stack(made)
        if done.dtype == np.float64:  # as of Normalize by a picture's own mean; networks have float32
            done = done.astype(np.float32)
        if done.ndim != 4:
            raise LDLError(f"picture transforms give shape {done.shape[1:]}; they must give (height, width, channels)")
        # Strides stay those of pictures, channels last, which is what convolutions on pictures like best.
        return torch.from_numpy(done).permute(0, 3, 1, 2)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a checkpoint; :meth:`from_dict` is the inverse."""
        return A.to_dict(A.Compose(self.transforms))

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Pipeline:
        """Rebuild a pipeline. Raises LDLError for transforms that this albumentations does not have, or too large."""
        try:
            if (largest := _largest(state)) > LARGEST:
                raise ValueError(f"they ask for {largest}, and {LARGEST} pixels are the most")
            return cls(A.from_dict(state).transforms)
        except Exception as error:  # those of albumentations' own checks have no common base
            reason = " ".join(str(error).split())
            raise LDLError(
                f"the checkpoint's picture transforms cannot be rebuilt with albumentations {A.__version__}: {reason}"
            ) from error
