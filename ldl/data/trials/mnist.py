"""MNIST's handwritten digits (LeCun et al. 1998), shifted or mixed (Babenko et al. 2008, Section 3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.data.files import check_file
from ldl.data.sources import absent
from ldl.data.trials.trials import Pictures, Trials
from ldl.errors import LDLError
from ldl.options import option, options
from ldl.trust.archive import check_archive

SIDE = 28


@options
class ShiftedDigits(Trials):
    """One digit against the others, each at a random place of a larger picture: ``truth`` (size, 2) is its shift.

    The 28 x 28 pictures of ``mnist.npz`` are put onto black, with ``margin`` pixels around them, and moved by up to as
    many, uniformly: by whole pixels, down and right of the top left corner. The shift is that of the 28 x 28 window
    that shows the digit as it was. Negatives are moved like positives.

    Args:
        digit: The positive digit.
        margin: Pixels on each side: shifts are 0 to twice as many.
    """

    digit: int = option(default=3, least=0, most=9)
    margin: int = option(default=8, least=0, most=4096, what="in pixels")
    train_fraction: float = 0.1
    batch_size: int = 50

    @property
    def names_of_labels(self) -> tuple[str, str]:
        return "other", f"{self.digit}"

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Draw digits and shifts. Raises LDLError: no file, or too few digits."""
        images, digits = read_mnist(self.data_root)
        negative = images[draw(np.flatnonzero(digits != self.digit), half, rng)]
        positive = images[draw(np.flatnonzero(digits == self.digit), half, rng)]
        return self._shift(negative, rng), self._shift(positive, rng)

    def _shift(self, images: np.ndarray, rng: np.random.Generator) -> Pictures:
        shifts = rng.integers(2 * self.margin + 1, size=(len(images), 2))
        side = SIDE + 2 * self.margin
        canvas = np.zeros((len(images), side, side), np.uint8)
        for picture, image, (down, right) in zip(canvas, images, shifts):
            picture[down : down + SIDE, right : right + SIDE] = image
        return Pictures(canvas, shifts)


@options
class MixedDigits(Trials):
    """A few digits against the others: ``truth`` (size,) is the digit, so that groups found can be compared with it.

    Args:
        positive_digits: The positive digits, as many of each as of the others, but for a remainder.
    """

    positive_digits: tuple[int, ...] = (0, 1, 2)
    pictures: int = 3000
    train_fraction: float = 0.4
    batch_size: int = 500

    @property
    def names_of_labels(self) -> tuple[str, str]:
        return "other", ", ".join(map(str, self.positive_digits))

    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """Draw digits. Raises LDLError: no file, too few digits, or no such digits."""
        chosen = set(self.positive_digits)
        if not chosen < set(range(10)) or not chosen or len(chosen) < len(self.positive_digits):
            raise LDLError(
                f"MixedDigits.positive_digits {list(self.positive_digits)} must be different digits, 1 to 9 of them"
            )
        images, digits = read_mnist(self.data_root)
        shares = np.array_split(np.arange(half), len(chosen))
        rows = [draw(np.flatnonzero(digits == digit), len(share), rng) for digit, share in zip(sorted(chosen), shares)]
        positive, negative = np.concatenate(rows), draw(np.flatnonzero(~np.isin(digits, list(chosen))), half, rng)
        return Pictures(images[negative], digits[negative]), Pictures(images[positive], digits[positive])


def read_mnist(root: Path) -> tuple[np.ndarray, np.ndarray]:
    """Training pictures (N, 28, 28) uint8 and their digits (N,) of ``mnist.npz``. Raises LDLError."""
    if not (path := root / "mnist.npz").exists():
        raise absent("mnist.npz", path, root, "or --data.root")
    try:
        check_file(path)
        check_archive(path)
        with np.load(path, allow_pickle=False) as file:
            images, digits = file["x_train"], file["y_train"]
    except Exception as error:  # those of numpy, zip and zlib have no common base
        raise LDLError(
            f"{path} is not MNIST as Keras has it (x_train, y_train): {' '.join(str(error).split())}"
        ) from None
    if images.shape[1:] != (SIDE, SIDE) or images.dtype != np.uint8 or digits.shape != images.shape[:1]:
        raise LDLError(
            f"{path} has pictures {images.shape} {images.dtype}; MNIST's are (N, 28, 28) uint8, one digit each"
        )
    return images, digits.astype(np.int64)


def draw(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` different ones of ``rows``. Raises LDLError where there are too few."""
    if count > len(rows):
        raise LDLError(f"pictures asks for {count} pictures of a kind of which there are {len(rows)}; lower it")
    return rng.choice(rows, count, replace=False)
