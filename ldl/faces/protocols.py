"""Evaluation protocols of faces: folds of persons or of ages, holdouts, and the splits of a published benchmark."""

from __future__ import annotations

import numpy as np

from ldl.data.images.records import SplitProtocol, SplitRequest, TrainTest
from ldl.errors import LDLError
from ldl.protocols import Fold, kfold, leave_one_group_out, random_split, stratified_kfold

FIRST_FOLDERS = (0, 2, 4, 5, 6)
"""First training folder of each split of the Facial Age Estimation Benchmark, which has ten folders."""


def _folders(request: SplitRequest) -> Fold:
    folder, sets = _folder_numbers(request), ([0], [1], [2])
    if _count_folders(request) > 1:
        ring = [(FIRST_FOLDERS[request.fold] + number) % 10 for number in range(10)]
        sets = ring[:6], ring[6:8], ring[8:]
    return Fold(*(np.flatnonzero(np.isin(folder, numbers)) for numbers in sets))


def _count_folders(request: SplitRequest) -> int:
    return 1 if set(_folder_numbers(request)) == {0, 1, 2} else len(FIRST_FOLDERS)


def _folder_numbers(request: SplitRequest) -> np.ndarray:
    texts = list(map(str, request.fact("folder", "0 to 9, or 0 to 2")))
    if wrong := [row for row, text in enumerate(texts) if not (text.isascii() and text.isdecimal())]:
        raise LDLError(
            f"this protocol needs a number from 0 on in the column 'folder', and {request.records.files[wrong[0]]} has "
            f"{texts[wrong[0]]!r}; correct it, or choose another protocol"
        )
    folder = np.array(texts, int)
    if set(folder) not in ({0, 1, 2}, set(range(10))):
        low, high = folder.min(), folder.max()
        raise LDLError(f"this protocol needs images in each of folders 0 to 9, or 0 to 2; the list has {low} to {high}")
    return folder


def _random_kfold(request: SplitRequest) -> TrainTest:
    fold = kfold(len(request.records), request.folds, request.fold, request.seed)
    return fold.train, fold.test


def _stratified(request: SplitRequest, persons: np.ndarray | None) -> TrainTest:
    return stratified_kfold(request.records.values, request.folds, request.fold, request.seed, persons)


def _persons(request: SplitRequest) -> np.ndarray:
    """Return the persons on the images. Raises LDLError if they are unknown."""
    if request.records.groups is None:
        raise LDLError(
            "this protocol keeps the images of a person in one set, and the list names no persons; add a column "
            "'person', or choose another protocol"
        )
    return request.records.groups


FOLDERS = SplitProtocol(_folders, True, _count_folders, published=True)
LEAVE_ONE_PERSON_OUT = SplitProtocol(
    lambda request: leave_one_group_out(_persons(request), request.fold),
    False,
    lambda request: len(np.unique(_persons(request))),
    published=True,
)
SUBJECT_EXCLUSIVE = SplitProtocol(lambda request: _stratified(request, _persons(request)), False)
STRATIFIED = SplitProtocol(lambda request: _stratified(request, request.records.groups), False)
HOLDOUT = SplitProtocol(lambda request: random_split(len(request.records), 0.1, request.seed), True, lambda request: 1)
RANDOM_80_20 = SplitProtocol(
    lambda request: random_split(len(request.records), 0.2, request.seed + request.fold), True, published=True
)
RANDOM_KFOLD = SplitProtocol(_random_kfold, True, published=True)
