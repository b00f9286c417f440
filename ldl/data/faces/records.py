"""What is known of a list of face pictures before any of them is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class FaceRecords:
    """Face pictures with their labels; all columns have one entry a picture.

    Attributes:
        folder: What the files are relative to.
        files: Paths of the pictures below ``folder``.
        values: (N,) true values, such as ages in years, or (N, 2) points of a plane.
        persons: (N,) who each picture shows, or None where nobody knows.
        anchors: For every picture the points that place the face (see ``align.placement``), or None.
        sigmas: (N,) standard deviation of each label distribution in the labels' unit, or None for one of all.
        facts: Further columns, (N,) each, that protocols ask for, such as ``race`` and ``gender``.
        extra: (N,) whether a picture is of another set, which is learned from in every fold and never tested; None
            where none is.
    """

    folder: Path
    files: list[str]
    values: np.ndarray
    persons: np.ndarray | None = None
    anchors: Sequence[np.ndarray | None] | None = None
    sigmas: np.ndarray | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    extra: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.files)

    def paths(self) -> list[Path]:
        """The pictures' full paths."""
        return [self.folder / file for file in self.files]

    def anchor(self, row: int) -> np.ndarray | None:
        """The points that place the face of one picture, or None."""
        return None if self.anchors is None else self.anchors[row]

    @property
    def alignment(self) -> str:
        """What places the faces: ``landmarks``, ``box``, or ``none`` for whole pictures."""
        lengths = {len(anchor) for anchor in self.anchors or () if anchor is not None}
        return {5: "landmarks", 4: "box"}.get(max(lengths, default=0), "none")

    def take(self, rows: np.ndarray) -> FaceRecords:
        """The pictures ``rows`` alone."""
        return FaceRecords(
            self.folder,
            [self.files[row] for row in rows],
            self.values[rows],
            None if self.persons is None else self.persons[rows],
            None if self.anchors is None else [self.anchors[row] for row in rows],
            None if self.sigmas is None else self.sigmas[rows],
            {name: column[rows] for name, column in self.facts.items()},
            None if self.extra is None else self.extra[rows],
        )

    def joined(self, other: FaceRecords, sigma: float) -> FaceRecords:
        """These pictures, then those of another set as extra ones, each of a person of its own.

        Args:
            other: The other set. Its persons and facts mean nothing to the protocols of this one.
            sigma: Standard deviation of the labels of a set that gives none, where the other one does.
        """
        count, more = len(self), len(other)
        persons = self.persons
        if persons is not None:
            unknown = np.arange(more) + (persons.max() + 1 if persons.dtype.kind in "iu" else 0)
            named = unknown if persons.dtype.kind in "iu" else np.array([f"extra {number}" for number in unknown])
            persons = np.concatenate([persons, named])
        sigmas = None
        if self.sigmas is not None or other.sigmas is not None:
            both = (np.full(len(one), sigma) if one.sigmas is None else one.sigmas for one in (self, other))
            sigmas = np.concatenate(list(both))
        anchors = [one.anchor(row) for one in (self, other) for row in range(len(one))]
        return FaceRecords(
            self.folder,
            # A path below nothing of this set's stays what it is.
            [*self.files, *(str(path.resolve()) for path in other.paths())],
            np.concatenate([self.values, other.values]),
            persons,
            anchors if self.anchors is not None or other.anchors is not None else None,
            sigmas,
            {name: np.concatenate([column, np.zeros(more, column.dtype)]) for name, column in self.facts.items()},
            np.arange(count + more) >= count,
        )
