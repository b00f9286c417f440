"""The base of data modules of faces and ages."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

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
    """

    age_range: ClassVar[tuple[int, int]] = (0, 100)

    min_age: int | None = option(default=None, least=0, most=1000, what="years", null="the usual")
    max_age: int | None = option(default=None, least=0, most=1000, what="years", null="the usual")

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
