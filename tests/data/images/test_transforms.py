"""Augmentation depends on the draw alone, and travels in checkpoints."""

from __future__ import annotations

import pickle

import albumentations as A
import numpy as np
import pytest
import torch

from ldl.data.images.transforms import Pipeline, default_train_transforms
from ldl.errors import LDLError

FACE = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)


def test_the_seed_of_the_draw_decides_alone() -> None:
    pipeline = Pipeline(default_train_transforms())
    expected = [pipeline(FACE, seed) for seed in range(100)]
    other = pickle.loads(pickle.dumps(Pipeline(default_train_transforms())))
    for seed in reversed(range(100)):
        np.testing.assert_array_equal(other(FACE, seed), expected[seed])
    # Now and then nothing is drawn, or the mirror alone.
    assert len({face.tobytes() for face in expected}) >= 95
    assert all(face.shape == FACE.shape and face.dtype == np.uint8 for face in expected)


def test_transforms_are_drawn_independently() -> None:
    """Whether a face is mirrored says nothing about whether it is turned upside down."""
    pipeline = Pipeline([A.HorizontalFlip(p=0.5), A.VerticalFlip(p=0.5)])
    dot = np.zeros((8, 8, 3), np.uint8)
    dot[0, 0] = 255
    counts = {(row, column): 0 for row in (0, 7) for column in (0, 7)}
    for seed in range(400):
        row, column, _ = np.argwhere(pipeline(dot, seed))[0]
        counts[row, column] += 1
    assert min(counts.values()) > 70


def test_pictures_in_float64_become_float32() -> None:
    """``Normalize`` by a picture's own mean gives float64, which no network takes."""
    made = Pipeline([A.Normalize(normalization="image_per_channel")]).batch([FACE, FACE[::-1]], np.arange(2))
    assert made.dtype == torch.float32
    torch.testing.assert_close(made.mean((2, 3)), torch.zeros(2, 3), atol=1e-4, rtol=0)
    assert Pipeline([]).batch([FACE], np.arange(1)).dtype == torch.uint8


def test_transforms_of_another_version_are_refused() -> None:
    state = Pipeline([A.ToGray(p=1)]).to_dict()
    state["transform"]["transforms"][0]["__class_fullname__"] = "ToGrayscaleOfOld"
    with pytest.raises(LDLError, match="image transforms cannot be rebuilt with albumentations .*ToGrayscaleOfOld"):
        Pipeline.from_dict(state)
