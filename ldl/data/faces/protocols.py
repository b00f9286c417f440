"""Protocols of faces: how pictures of persons are cut into training and test, and which cuts leak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError
from ldl.protocols import Fold, kfold, leave_one_group_out, random_split, stratified_kfold

Rows = tuple[np.ndarray, np.ndarray] | Fold
"""Training and test rows; or with those of validation, where a protocol says which they are."""


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
        rows: The rows of a fold.
        leaky: Whether persons of the test part may be in training, where persons are known.
        count: Number of folds, from the same arguments.
        listed: Whether it follows a published list where one is given.
    """

    rows: Callable[[Cut], Rows]
    leaky: bool
    count: Callable[[Cut], int] = lambda cut: cut.folds
    listed: bool = False


def _parts(cut: Cut) -> Rows:
    part = _fact(cut, "part", "train, val or test")
    train, val, test = (np.flatnonzero(part == name) for name in ("train", "val", "test"))
    if lacking := [name for name, rows in (("train", train), ("test", test)) if not len(rows)]:
        raise LDLError(
            f"no picture of the list is in part {lacking[0]!r}; this protocol needs train and test: name pictures of "
            "both in the column 'part', or choose another"
        )
    return Fold(train, val, test) if len(val) else (train, test)


def _folders(cut: Cut) -> Rows:
    """Six folders to train on, two for validation and two to test on, or one each where there are three."""
    folder, roles = _numbered(cut), ([0], [1], [2])
    if _count_folders(cut) > 1:
        turned = [(FIRST_FOLDERS[cut.fold] + number) % 10 for number in range(10)]
        roles = turned[:6], turned[6:8], turned[8:]
    return Fold(*(np.flatnonzero(np.isin(folder, role)) for role in roles))


def _count_folders(cut: Cut) -> int:
    return 1 if set(_numbered(cut)) == {0, 1, 2} else len(FIRST_FOLDERS)


def _numbered(cut: Cut) -> np.ndarray:
    folder = _fact(cut, "folder", "0 to 9, or 0 to 2").astype(int)
    if set(folder) not in ({0, 1, 2}, set(range(10))):
        low, high = folder.min(), folder.max()
        raise LDLError(
            f"this protocol needs pictures in each of folders 0 to 9, or 0 to 2; the list has {low} to {high}"
        )
    return folder


def _fact(cut: Cut, name: str, what: str) -> np.ndarray:
    if name not in cut.records.facts:
        raise LDLError(f"this protocol needs a column {name!r} ({what}) in the list; add it, or choose another")
    return cut.records.facts[name]


def _random_kfold(cut: Cut) -> Rows:
    fold = kfold(len(cut.records), cut.folds, cut.fold, cut.seed)
    return fold.train, fold.test


FIRST_FOLDERS = (0, 2, 4, 5, 6)
"""The first of the ten folders that each split of the Facial Age Estimation Benchmark trains on."""

PARTS = FaceProtocol(_parts, True, lambda cut: 1)
FOLDERS = FaceProtocol(_folders, True, _count_folders)
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
