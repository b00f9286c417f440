"""The base of data modules of faces and ages."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from ldl.data.faces.face_list import read_face_list, read_named_faces
from ldl.data.faces.module import Faces
from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import option, options


@options
class FaceAges(Faces):
    """Pictures of faces with ages in years. A subclass lists its files in ``read`` and names its protocols.

    Args:
        min_age: Lowest age of the label space; None takes the data set's usual range.
        max_age: Highest age, likewise.
        extra: Pictures that every fold learns from and none tests: a folder of UTKFace's kind of names, or a list as
            ``FaceFolder`` reads.
        extra_limit: At most so many of them, drawn at random by ``fold_seed``; None takes all.
        extra_share: How much of what training draws they are; None: as they come.
    """

    age_range: ClassVar[tuple[int, int]] = (0, 100)

    min_age: int | None = option(default=None, least=0, most=1000, what="years", null="the usual")
    max_age: int | None = option(default=None, least=0, most=1000, what="years", null="the usual")
    extra: str | None = None
    extra_limit: int | None = option(default=None, least=1, most=2**31 - 1, null="all")
    extra_share: float | None = option(default=None, above=0, below=1, null="as they come")

    def label_space(self, records: FaceRecords) -> LabelSpace:
        """Every year of the range. Raises LDLError for an age outside it."""
        low = self.age_range[0] if self.min_age is None else self.min_age
        high = self.age_range[1] if self.max_age is None else self.max_age
        if len(outside := np.flatnonzero(~((records.values >= low) & (records.values <= high)))):
            row = outside[0]
            raise LDLError(
                f"{records.files[row]} has age {records.values[row]:g}, outside {low}..{high} years "
                f"({len(outside)} such pictures); widen data.min_age and data.max_age, or correct it"
            )
        return LabelSpace.ordinal(range(low, high + 1), "years")

    def gather(self) -> FaceRecords:
        """The pictures of the set, then the extra ones. Raises LDLError where those cannot be read."""
        records = self.read()
        if self.extra is None:
            given = {"extra_limit": self.extra_limit, "extra_share": self.extra_share}
            for name in (name for name, value in given.items() if value is not None):
                raise LDLError(f"data.{name} {given[name]:g} needs data.extra, pictures of another set; set it, too")
            return records
        other = read_extra(self.find(self.extra))
        if both := {path.resolve() for path in records.paths()} & {path.resolve() for path in other.paths()}:
            raise LDLError(
                f"data.extra {self.extra} has {len(both)} pictures of {type(self).__name__}, such as {min(both)}, "
                "which would be learned from where they are tested; leave them out"
            )
        if self.extra_limit is not None and self.extra_limit < len(other):
            drawn = np.random.default_rng(self.fold_seed).choice(len(other), self.extra_limit, replace=False)
            other = other.take(np.sort(drawn))
        return records.joined(other, self.sigma)

    def often(self) -> np.ndarray | None:
        """As :meth:`LDLDataModule.often`, with the share that extra pictures are to have."""
        often, extra = super().often(), self.records.extra
        if extra is None or self.extra_share is None:
            return often
        often = np.ones(len(self.split.train)) if often is None else often
        taken = extra[self.split.train]
        for rows, share in ((taken, self.extra_share), (~taken, 1 - self.extra_share)):
            often[rows] *= share * len(often) / often[rows].sum()
        return often

    @property
    def train_values(self) -> np.ndarray | None:
        """Ages of the set's own training part: which of them are rare is a matter of that set."""
        extra, values = self.records.extra, super().train_values
        return values if extra is None or values is None else values[~extra[self.split.train]]


def read_extra(place: Path) -> FaceRecords:
    """Pictures of another set: a folder that names ages as UTKFace does, or a list. Raises LDLError."""
    if not place.exists():
        raise LDLError(f"data.extra: nothing at {place}; give a folder of pictures named as UTKFace's, or a CSV list")
    return read_named_faces(place) if place.is_dir() else read_face_list(place)
