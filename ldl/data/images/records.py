"""Lists of images with their labels, and the evaluation protocols that split them into training and test sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.pictures import units
from ldl.errors import LDLError
from ldl.protocols import Fold, kfold, leave_one_group_out, published_split, random_split, stratified_kfold

TrainTest = tuple[np.ndarray, np.ndarray]
"""Training and test rows."""


@dataclass
class FaceRecords:
    """Face images with their labels. Every column has one entry per image, and no image has been opened.

    Attributes:
        folder: Folder that ``files`` are relative to.
        files: Paths of the images.
        values: (N,) true values, such as ages in years, or (N, 2) points of a grid.
        persons: (N,) person in each image, or None if the persons are unknown.
        anchors: Per image the points that locate the face (see :func:`ldl.data.images.crops.placement`), or None.
        sigmas: (N,) standard deviation of each label distribution in the labels' unit; None uses one for all.
        facts: Further columns, (N,) each, that protocols use, such as ``race`` and ``gender``.
        extra: (N,) whether an image is from another data set, in the training set of every fold and in no test set.
        columns: Column of the list that holds each part, by the part, such as ``person``.
        left_out: Columns of the list without a use.
    """

    folder: Path
    files: list[str]
    values: np.ndarray
    persons: np.ndarray | None = None
    anchors: Sequence[np.ndarray | None] | None = None
    sigmas: np.ndarray | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    extra: np.ndarray | None = None
    columns: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.files)

    def paths(self) -> list[Path]:
        """Return the full paths of the images."""
        return [self.folder / file for file in self.files]

    def anchor(self, row: int) -> np.ndarray | None:
        """Return the points that locate the face in one image, or None."""
        return None if self.anchors is None else self.anchors[row]

    @property
    def alignment(self) -> str:
        """How the faces are located: ``landmarks``, ``box``, or ``none`` for whole images."""
        lengths = {len(anchor) for anchor in self.anchors or () if anchor is not None}
        return {5: "landmarks", 4: "box"}.get(max(lengths, default=0), "none")

    def take(self, rows: np.ndarray) -> FaceRecords:
        """Return the records of the images ``rows``."""

        def taken(column: Any) -> Any:
            return column if column is None else column[rows]

        return replace(
            self,
            files=[self.files[row] for row in rows],
            values=self.values[rows],
            anchors=None if self.anchors is None else [self.anchors[row] for row in rows],
            facts={name: column[rows] for name, column in self.facts.items()},
            persons=taken(self.persons),
            sigmas=taken(self.sigmas),
            extra=taken(self.extra),
        )

    def joined(self, other: FaceRecords, sigma: float) -> FaceRecords:
        """Return these records followed by those of another data set as extra images, each with a person of its own.

        Args:
            other: The other data set. Its persons and facts are ignored.
            sigma: Standard deviation for a data set without ``sigmas``, if the other data set has them.
        """
        count, more = len(self), len(other)
        persons = self.persons
        if persons is not None:
            numbered = persons.dtype.kind in "iu"
            unknown = np.arange(more) + (persons.max() + 1 if numbered else 0)
            named = unknown if numbered else np.array([f"extra {number}" for number in unknown])
            persons = np.concatenate([persons, named])
        sigmas = None
        if self.sigmas is not None or other.sigmas is not None:
            both = [np.full(len(part), sigma) if part.sigmas is None else part.sigmas for part in (self, other)]
            sigmas = np.concatenate(both)
        anchors = [part.anchor(row) for part in (self, other) for row in range(len(part))]
        return FaceRecords(
            self.folder,
            [*self.files, *(str(path.resolve()) for path in other.paths())],
            np.concatenate([self.values, other.values]),
            persons,
            anchors if self.anchors is not None or other.anchors is not None else None,
            sigmas,
            {name: np.concatenate([column, np.zeros(more, column.dtype)]) for name, column in self.facts.items()},
            np.arange(count + more) >= count,
        )


@dataclass(frozen=True)
class SplitRequest:
    """Input of a protocol.

    Attributes:
        records: The images.
        folds: Number of folds, for protocols that let the user choose.
        fold: Index of the test fold.
        seed: Seed of the folds.
        split_list: Published list to follow, a file or a folder of lists, or None.
        skip_missing: Leave out listed images that do not exist.
    """

    records: FaceRecords
    folds: int
    fold: int
    seed: int
    split_list: Path | None = None
    skip_missing: bool = False

    @property
    def persons(self) -> np.ndarray:
        """Persons of the images. Raises LDLError if they are unknown."""
        if self.records.persons is None:
            raise LDLError(
                "this protocol keeps the images of a person in one set, and the list names no persons; add a column "
                "'person', or choose another protocol"
            )
        return self.records.persons

    def fact(self, name: str, allowed: str) -> np.ndarray:
        """Return a column of facts. Raises LDLError if the list does not have it."""
        if name not in self.records.facts:
            raise LDLError(
                f"this protocol needs a column {name!r} ({allowed}) in the list; add it, or choose another protocol"
            )
        return self.records.facts[name]


@dataclass(frozen=True)
class FaceProtocol:
    """An evaluation protocol of face images.

    Attributes:
        rows: Returns training and test rows of a fold, or a ``Fold`` if the protocol defines the validation set.
        leaky: Whether persons of the test set may be in the training set.
        count: Returns the number of folds.
        listed: Whether the protocol can follow a published list.
        published: Whether copies of an image stay where the protocol puts them, as in published results. Other
            protocols keep copies in one set.
    """

    rows: Callable[[SplitRequest], TrainTest | Fold]
    leaky: bool
    count: Callable[[SplitRequest], int] = lambda request: request.folds
    listed: bool = False
    published: bool = False

    def units(self, copies: np.ndarray, persons: np.ndarray | None) -> np.ndarray:
        """Return group numbers (N,) of images to keep in one set: copies and, unless leaky, whole persons."""
        return units(copies, None if self.leaky else persons)


FIRST_FOLDERS = (0, 2, 4, 5, 6)
"""First training folder of each split of the Facial Age Estimation Benchmark, which has ten folders."""


def _parts(request: SplitRequest) -> TrainTest | Fold:
    fold = published_split(request.fact("part", "train, val or test"), 0, 0)
    return fold if len(fold.val) else (fold.train, fold.test)


def _folders(request: SplitRequest) -> Fold:
    folder, roles = _folder_numbers(request), ([0], [1], [2])
    if _count_folders(request) > 1:
        ring = [(FIRST_FOLDERS[request.fold] + number) % 10 for number in range(10)]
        roles = ring[:6], ring[6:8], ring[8:]
    return Fold(*(np.flatnonzero(np.isin(folder, role)) for role in roles))


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


PARTS = FaceProtocol(_parts, True, lambda request: 1, published=True)
FOLDERS = FaceProtocol(_folders, True, _count_folders, published=True)
LEAVE_ONE_PERSON_OUT = FaceProtocol(
    lambda request: leave_one_group_out(request.persons, request.fold),
    False,
    lambda request: len(np.unique(request.persons)),
    published=True,
)
SUBJECT_EXCLUSIVE = FaceProtocol(lambda request: _stratified(request, request.persons), False)
STRATIFIED = FaceProtocol(lambda request: _stratified(request, request.records.persons), False)
HOLDOUT = FaceProtocol(lambda request: random_split(len(request.records), 0.1, request.seed), True, lambda request: 1)
RANDOM_80_20 = FaceProtocol(
    lambda request: random_split(len(request.records), 0.2, request.seed + request.fold), True, published=True
)
RANDOM_KFOLD = FaceProtocol(_random_kfold, True, published=True)
