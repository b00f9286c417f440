"""The base of data modules that make pictures of something and of its absence, and try a small share of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.data.loaded import Loaded
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import buffer, option, options
from ldl.protocols import Fold, with_validation


class Pictures(NamedTuple):
    """What is made: ``images`` (N, H, W) uint8 grey, and ``truth`` (N,) or (N, 2), what nobody tells the model."""

    images: np.ndarray
    truth: np.ndarray


@options
class Trials(LDLDataModule):
    """Grey pictures (1, H, W) of 0 to 255 with two labels, half of them positive; a fold is a trial.

    Every trial trains on another random share of the same pictures, with as many positives as negatives, and tests on
    all others; test parts of different trials overlap, as in Babenko et al. 2008. The pictures are fixed by
    ``draw_seed``.

    Args:
        pictures: How many; half are positive.
        train_fraction: Share of the pictures that a trial trains on.
        draw_seed: Seed of the pictures, and of where they lie.
        folds: Number of trials.
        fold: The trial, from 0.

    Attributes:
        truth: (size, ...) what a model is to find by itself, such as places or groups; meaningless for negatives.
        positive: (size,) whether a picture is positive.
    """

    pictures: int = option(default=1000, least=4, most=10**6)
    train_fraction: float = option(default=0.5, above=0, below=1, what="a share of the pictures")
    draw_seed: int = option(default=0, least=0)
    val_fraction: float = 0.0

    protocol = "trials"
    leaky = None
    truth: np.ndarray = buffer()
    positive: np.ndarray = buffer()

    @property
    @abstractmethod
    def names_of_labels(self) -> tuple[str, str]:
        """What the negatives and the positives are called."""

    @abstractmethod
    def make(self, half: int, rng: np.random.Generator) -> tuple[Pictures, Pictures]:
        """``half`` negatives and ``half`` positives. Raises LDLError."""

    def load(self) -> Loaded:
        """Make the pictures. Raises LDLError."""
        if self.pictures % 2:
            raise LDLError(f"{type(self).__name__}.pictures {self.pictures} must be even: half of them are positive")
        rng = np.random.default_rng(self.draw_seed)
        negative, positive = self.make(self.pictures // 2, rng)
        order = rng.permutation(self.pictures)
        self.images = torch.from_numpy(np.concatenate([negative.images, positive.images])[order]).unsqueeze(1)
        self.truth = np.concatenate([negative.truth, positive.truth])[order]
        self.positive = order >= self.pictures // 2
        return Loaded(LabelSpace.nominal(self.names_of_labels), {"target": torch.eye(2)[self.positive.astype(int)]})

    def cut(self) -> Fold:
        """The rows of a trial. Raises LDLError for a trial or a share that does not exist."""
        if not 0 <= self.fold < self.folds:
            raise LDLError(f"fold {self.fold} must be in 0..{self.folds - 1}, one of the {self.folds} trials")
        count = round(self.train_fraction * self.size)
        if not 2 <= count <= self.size - 2:
            raise LDLError(f"train_fraction {self.train_fraction:g} of {self.size} pictures leaves a part empty")
        state = int(np.random.default_rng([self.fold_seed, self.fold]).integers(2**32))
        rows = np.arange(self.size)
        train, test = train_test_split(rows, train_size=count, stratify=self.positive, random_state=state)
        return with_validation(train, test, self.val_fraction, self.fold_seed, self.fold)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The pictures ``rows``; training adds no augmentation."""
        return self.images[torch.from_numpy(rows)]
