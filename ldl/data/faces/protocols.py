"""Protocols of faces: how pictures of persons are cut into training and test, and which cuts leak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError
from ldl.protocols import kfold, leave_one_group_out, random_split, stratified_kfold

Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Cut:
    """What a protocol may look at.

    Attributes:
        records: The pictures.
        folds: Number of folds, for protocols that let the user choose.
        fold: The tested fold.
        seed: Random state of the folds.
        split_list: The published list to follow, a file or the folder of several, or None.
        skip_missing: Whether pictures that the list names and that are not there may be left out.
    """

    records: FaceRecords
    folds: int
    fold: int
    seed: int
    split_list: Path | None = None
    skip_missing: bool = False

    @property
    def persons(self) -> np.ndarray:
        """Who the pictures show. Raises LDLError where nobody knows."""
        if self.records.persons is None:
            raise LDLError(
                "a protocol that keeps persons apart needs to know them; add a column 'person', or choose another"
            )
        return self.records.persons


@dataclass(frozen=True)
class FaceProtocol:
    """One protocol.

    Attributes:
        rows: Training and test rows of a fold.
        leaky: Whether persons of the test part may be in training, where persons are known.
        count: Number of folds, from the same arguments.
        listed: Whether it follows a published list where one is given.
    """

    rows: Callable[[Cut], Rows]
    leaky: bool
    count: Callable[[Cut], int] = lambda cut: cut.folds
    listed: bool = False


def _random_kfold(cut: Cut) -> Rows:
    fold = kfold(len(cut.records), cut.folds, cut.fold, cut.seed)
    return fold.train, fold.test


LEAVE_ONE_PERSON_OUT = FaceProtocol(
    lambda cut: leave_one_group_out(cut.persons, cut.fold), False, lambda cut: len(np.unique(cut.persons))
)
SUBJECT_EXCLUSIVE = FaceProtocol(
    lambda cut: stratified_kfold(cut.records.values, cut.folds, cut.fold, cut.seed, cut.persons), False
)
STRATIFIED = FaceProtocol(
    lambda cut: stratified_kfold(cut.records.values, cut.folds, cut.fold, cut.seed, cut.records.persons), False
)
HOLDOUT = FaceProtocol(lambda cut: random_split(len(cut.records), 0.1, cut.seed), True, lambda cut: 1)
RANDOM_80_20 = FaceProtocol(lambda cut: random_split(len(cut.records), 0.2, cut.seed + cut.fold), True)
RANDOM_KFOLD = FaceProtocol(_random_kfold, True)
