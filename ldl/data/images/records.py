"""Lists of images with their labels, and the evaluation protocols that split them into training and test sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.pictures import units
from ldl.errors import LDLError
from ldl.moved import old_names
from ldl.protocols import Fold, published_split

TrainTest = tuple[np.ndarray, np.ndarray]
"""Training and test rows."""


@dataclass
class ImageRecords:
    """Images with their labels. Every column has one entry per image, and no image has been opened.

    Attributes:
        folder: Folder that ``files`` are relative to.
        files: Paths of the images.
        values: (N,) true values, such as ages in years, or (N, 2) points of a grid.
        groups: (N,) group of each image, such as the person on it, or None if the groups are unknown.
        anchors: Per image the points that locate the object on it, such as a face, or None; see
            :func:`ldl.data.images.crops.placement`.
        sigmas: (N,) standard deviation of each label distribution in the labels' unit; None uses one for all.
        facts: Further columns, (N,) each, that protocols use, such as ``race`` and ``gender``.
        extra: (N,) whether an image is from another data set, in the training set of every fold and in no test set.
        columns: Names of the columns of the list by their content, such as ``person``.
        left_out: Columns of the list without a use.
    """

    folder: Path
    files: list[str]
    values: np.ndarray
    groups: np.ndarray | None = None
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
        """Return the points that locate the object in one image, or None."""
        return None if self.anchors is None else self.anchors[row]

    @property
    def alignment(self) -> str:
        """How the objects are located: ``landmarks``, ``box``, or ``none`` for whole images."""
        lengths = {len(anchor) for anchor in self.anchors or () if anchor is not None}
        return {5: "landmarks", 4: "box"}.get(max(lengths, default=0), "none")

    def take(self, rows: np.ndarray) -> ImageRecords:
        """Return the records of the images ``rows``."""

        def taken(column: Any) -> Any:
            return column if column is None else column[rows]

        return replace(
            self,
            files=[self.files[row] for row in rows],
            values=self.values[rows],
            anchors=None if self.anchors is None else [self.anchors[row] for row in rows],
            facts={name: column[rows] for name, column in self.facts.items()},
            groups=taken(self.groups),
            sigmas=taken(self.sigmas),
            extra=taken(self.extra),
        )

    def joined(self, other: ImageRecords, sigma: float) -> ImageRecords:
        """Return these records followed by those of another data set as extra images, each with a group of its own.

        Args:
            other: The other data set. Its groups and facts are ignored.
            sigma: Standard deviation for a data set without ``sigmas``, if the other data set has them.
        """
        both, extra = (self, other), len(other)
        anchors, sigmas = None, None
        if self.anchors is not None or other.anchors is not None:
            anchors = [records.anchor(row) for records in both for row in range(len(records))]
        if self.sigmas is not None or other.sigmas is not None:
            columns = [np.full(len(each), sigma) if each.sigmas is None else each.sigmas for each in both]
            sigmas = np.concatenate(columns)
        return ImageRecords(
            self.folder,
            [*self.files, *(str(path.resolve()) for path in other.paths())],
            np.concatenate([self.values, other.values]),
            None if self.groups is None else np.concatenate([self.groups, _new_groups(self.groups, extra)]),
            anchors,
            sigmas,
            {name: np.concatenate([column, np.zeros(extra, column.dtype)]) for name, column in self.facts.items()},
            np.arange(len(self) + extra) >= len(self),
        )


def _new_groups(groups: np.ndarray, count: int) -> np.ndarray:
    """Return ``count`` groups that are not among ``groups``."""
    if groups.dtype.kind in "iu":
        return np.arange(count) + groups.max() + 1
    return np.array([f"extra {number}" for number in range(count)])


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

    records: ImageRecords
    folds: int
    fold: int
    seed: int
    split_list: Path | None = None
    skip_missing: bool = False

    def fact(self, name: str, allowed: str) -> np.ndarray:
        """Return a column of facts. Raises LDLError if the list does not have it."""
        if name not in self.records.facts:
            raise LDLError(
                f"this protocol needs a column {name!r} ({allowed}) in the list; add it, or choose another protocol"
            )
        return self.records.facts[name]


@dataclass(frozen=True)
class SplitProtocol:
    """An evaluation protocol of images.

    Attributes:
        rows: Returns training and test rows of a fold, or a ``Fold`` if the protocol defines the validation set.
        leaky: Whether groups of the test set may be in the training set.
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

    def units(self, copies: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
        """Return numbers (N,) that are equal for images to keep in one set: copies and, unless leaky, groups."""
        return units(copies, None if self.leaky else groups)


def _published_split(request: SplitRequest) -> TrainTest | Fold:
    fold = published_split(request.fact("part", "train, val or test"), 0, 0)
    return fold if len(fold.val) else (fold.train, fold.test)


PUBLISHED_SPLIT = SplitProtocol(_published_split, True, lambda request: 1, published=True)
"""The sets that a list names in the column ``part``."""

__getattr__ = old_names(__name__)
