"""The base of data modules of faces and ages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ldl.data.faces.module import Alignment, Faces
from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError
from ldl.labels import Encoder, LabelSpace

if TYPE_CHECKING:
    from albumentations import BaseCompose, BasicTransform


class FaceAges(Faces):
    """Pictures of faces with ages in years. A subclass lists its files in ``read`` and names its protocols.

    Crops are made once and kept in ``cache_dir``. Batches hold pictures as uint8; the backbone normalises them.

    Args:
        path: Where the data set lies: as it stands, or below the data folder; None takes its usual place there.
        protocol: How training and test pictures are told apart; None takes the data set's first.
        split_list: A published list for protocols that follow one: a file, or the folder of several.
        alignment: What places the face: ``landmarks``, ``box``, or ``none`` for the whole picture; None takes the
            best that the data set has.
        boxes: A JSON file of face boxes, as the Facial Age Estimation Benchmark publishes them.
        crop_size: Side of the crops in pixels.
        margin: What is added around the face on every side, as a share of the face's square; None adds 0.2 around
            landmarks and nothing around boxes.
        min_age: Lowest age of the label space; None takes the data set's usual range.
        max_age: Highest age, likewise.
        sigma: Standard deviation of the label distributions in years, where the data give none for each picture.
        encoder: Shape of the label distributions, ``gaussian`` or ``triangle``.
        train_transforms: albumentations transforms of training; None takes mirror, small turns and shifts, light.
        eval_transforms: Those of validation, test and prediction; None takes none.
        skip_unreadable: Leave out missing and damaged pictures, and say so, instead of stopping at them.
        cache_dir: Folder for crops and features; None takes the environment's ``LDL_CACHE``, or ``~/.cache/ldl``.
        batch_size: Rows of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds, for protocols that leave it open.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds.
        val_fraction: Share of the training persons, or pictures, that is kept for validation; 0 trains on all.
    """

    age_range: ClassVar[tuple[int, int]] = (0, 100)

    def __init__(
        self,
        path: str | None = None,
        protocol: str | None = None,
        split_list: str | None = None,
        alignment: Alignment | None = None,
        boxes: str | None = None,
        crop_size: int = 112,
        margin: float | None = None,
        min_age: int | None = None,
        max_age: int | None = None,
        sigma: float = 2.0,
        encoder: Encoder = "gaussian",
        train_transforms: Sequence[BasicTransform | BaseCompose] | None = None,
        eval_transforms: Sequence[BasicTransform | BaseCompose] | None = None,
        skip_unreadable: bool = False,
        cache_dir: str | None = None,
        batch_size: int = 64,
        num_workers: int = 0,
        root: str | None = None,
        folds: int = 5,
        fold: int = 0,
        fold_seed: int = 0,
        val_fraction: float = 0.1,
    ) -> None:
        super().__init__(
            path, protocol, split_list, alignment, boxes, crop_size, margin, sigma, encoder, train_transforms,
            eval_transforms, skip_unreadable, cache_dir, batch_size, num_workers, root, folds, fold, fold_seed,
            val_fraction,
        )  # fmt: skip
        self.min_age = min_age
        self.max_age = max_age

    def label_space(self, records: FaceRecords) -> LabelSpace:
        """Every year of the range. Raises LDLError for an age outside it."""
        low = self.age_range[0] if self.min_age is None else self.min_age
        high = self.age_range[1] if self.max_age is None else self.max_age
        outside = np.flatnonzero(~((records.values >= low) & (records.values <= high)))
        if len(outside):
            row = outside[0]
            raise LDLError(
                f"{records.files[row]} has age {records.values[row]:g}, outside {low}..{high} years "
                f"({len(outside)} such pictures); widen data.min_age and data.max_age, or correct it"
            )
        return LabelSpace.ordinal(range(low, high + 1), "years")
