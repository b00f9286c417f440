"""Shifted and mixed digits and faces: what the pictures hold, what is known of them, and how trials are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes import digit_images, face_releases
from scipy import ndimage
from sklearn.datasets import load_digits

from ldl.data import MixedDigits, PosedFaces, RotatedDigits, ShiftedDigits, ShiftedFaces
from ldl.data.synthetic import read_mnist
from ldl.errors import LDLError

KINDS: list[type[Any]] = [ShiftedDigits, MixedDigits, ShiftedFaces, PosedFaces]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small trees of all that the modules read."""
    folder = tmp_path_factory.mktemp("data")
    return digit_images.mnist(digit_images.bsds(face_releases.utkface(folder, 50)))


def _open(kind: type[Any], root: Path, **options: Any) -> Any:
    data = kind(root=str(root), **{"pictures": 40, "train_fraction": 0.25, **options})
    data.setup()
    return data


def test_digits_are_rotated_as_scipy_does() -> None:
    data = RotatedDigits(turns=1)
    angles = data.load().values
    digits = np.pad(load_digits().images / 16, ((0, 0), (2, 2), (2, 2)))
    rotated = [ndimage.rotate(digit, angle, reshape=False, order=1) for digit, angle in zip(digits, angles)]
    np.testing.assert_allclose(data.images[:, 0], rotated, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_half_of_the_pictures_is_positive_and_a_batch_says_so(kind: type[Any], root: Path) -> None:
    data = _open(kind, root, batch_size=40)
    (batch,) = data.whole_dataloader()
    assert batch["input"].shape == (40, *data.input_shape) and batch["input"].dtype == torch.uint8
    assert data.positive.sum() == 20
    assert torch.equal(batch["target"][:, 1], torch.from_numpy(data.positive).float())
    assert (batch["target"].sum(1) == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_trials_share_the_pictures_and_balance_the_labels(kind: type[Any], root: Path) -> None:
    first, second = _open(kind, root, fold=0, val_fraction=0.2), _open(kind, root, fold=1)
    assert torch.equal(first.images, second.images) and np.array_equal(first.truth, second.truth)
    for data, parts in ((first, (8, 2)), (second, (10, 0))):
        split = data.split
        assert (len(split.train), len(split.val), len(split.test)) == (*parts, 30)
        assert data.positive[np.concatenate([split.train, split.val])].sum() == 5
        assert sorted(np.concatenate([split.train, split.val, split.test])) == list(range(40))
    assert not np.array_equal(first.split.test, second.split.test)


def test_the_true_window_of_a_shifted_digit_is_the_digit(root: Path) -> None:
    data = _open(ShiftedDigits, root, digit=7, margin=5)
    images, digits = read_mnist(root)
    known = {image.tobytes(): digit for image, digit in zip(images, digits)}
    assert data.input_shape == (1, 38, 38)
    assert data.truth.min() >= 0 and data.truth.max() <= 10
    assert len(np.unique(data.truth, axis=0)) > 20
    for picture, (down, right), positive in zip(data.images[:, 0].numpy(), data.truth, data.positive):
        window = picture[down : down + 28, right : right + 28]
        assert (known[window.tobytes()] == 7) == positive
        assert picture.sum(dtype=int) == window.sum(dtype=int)


def test_mixed_digits_keep_what_they_are(root: Path) -> None:
    data = _open(MixedDigits, root, positive_digits=(1, 4, 9))
    images, digits = read_mnist(root)
    known = {image.tobytes(): digit for image, digit in zip(images, digits)}
    assert [known[picture.tobytes()] for picture in data.images[:, 0].numpy()] == data.truth.tolist()
    assert np.array_equal(np.isin(data.truth, (1, 4, 9)), data.positive)
    assert sorted(np.bincount(data.truth[data.positive])[[1, 4, 9]]) == [6, 7, 7]
    assert data.labels.names == ("other", "1, 4, 9")


def test_poses_fill_what_they_should(root: Path) -> None:
    data = _open(PosedFaces, root, side=40)
    assert set(data.truth[~data.positive]) == {-1}
    assert sorted(np.bincount(data.truth[data.positive])) == [6, 7, 7]
    for pose, width in ((0, 16), (1, 40), (2, 32)):
        start = (40 - width) // 2
        for picture in data.images[data.positive & (data.truth == pose), 0].numpy().astype(float):
            assert picture[start : start + width, start : start + width].std() < 15
            if start:
                assert picture.std() > 10


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (ShiftedDigits, {"pictures": 41}, "ShiftedDigits.pictures 41 must be even"),
        (ShiftedDigits, {"pictures": 100}, "needs 50 images of a kind of which there are 30; lower it"),
        (ShiftedDigits, {"train_fraction": 0.99}, "train_fraction 0.99 of 40 images leaves a part empty"),
        (ShiftedDigits, {"fold": 10}, "fold 10 must be in 0..9, one of the 10 trials"),
        (MixedDigits, {"positive_digits": (1, 1)}, r"MixedDigits.positive_digits \[1, 1\] must be different digits"),
        (MixedDigits, {"positive_digits": tuple(range(10))}, "1 to 9 of them"),
    ],
)
def test_what_does_not_exist_is_refused(kind: type[Any], options: dict[str, Any], message: str, root: Path) -> None:
    with pytest.raises(LDLError, match=message):
        _open(kind, root, **options)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="no MNIST at .*mnist.npz: it lies as mnist.npz with x_train"):
        _open(ShiftedDigits, tmp_path)
    np.savez(tmp_path / "mnist.npz", x=np.zeros(3))
    with pytest.raises(LDLError, match="is not MNIST as Keras has it"):
        _open(ShiftedDigits, tmp_path)
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros((3, 8, 8), np.uint8), y_train=np.zeros(3))
    with pytest.raises(LDLError, match=r"has images \(3, 8, 8\) uint8; MNIST's are"):
        _open(ShiftedDigits, tmp_path)
    with pytest.raises(LDLError, match="BSDS500"):
        _open(PosedFaces, face_releases.utkface(tmp_path, 20))
