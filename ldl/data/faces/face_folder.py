"""Pictures of one's own: a CSV file of path and age."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ldl.data.csv_table import read_csv
from ldl.data.faces.ages import FaceAges
from ldl.data.faces.protocols import HOLDOUT, LEAVE_ONE_PERSON_OUT, STRATIFIED, SUBJECT_EXCLUSIVE
from ldl.data.faces.records import FaceRecords
from ldl.data.files import check_file
from ldl.errors import LDLError

_BOX = ("x0", "y0", "x1", "y1")


class FaceFolder(FaceAges):
    """Faces of one's own, listed in a CSV file: ``--data.path faces.csv``.

    Its columns: ``path`` (relative to the file), ``age`` (years), and as far as they are known ``person``,
    ``sigma`` (years; of this picture's label distribution) and ``x0, y0, x1, y1`` (the face's box, in pixels).
    Without boxes the pictures are taken whole.

    Protocols: ``stratified`` (``folds`` folds with the same mix of ages; whole persons where the file has them);
    ``leave_one_person_out``; ``subject_exclusive`` (refused where persons are not known); ``holdout`` (a random tenth).
    """

    protocols = {
        "stratified": STRATIFIED,
        "subject_exclusive": SUBJECT_EXCLUSIVE,
        "leave_one_person_out": LEAVE_ONE_PERSON_OUT,
        "holdout": HOLDOUT,
    }
    age_range = (0, 100)
    unused = ("boxes",)

    @property
    def title(self) -> str:
        """The name of the list."""
        return Path(self.path or "faces").stem

    def read(self) -> FaceRecords:
        """Read the list. Raises LDLError for a missing file or column, or a field that is no number."""
        if self.path is None:
            raise LDLError("FaceFolder needs --data.path, a CSV file with the columns path and age")
        file = self.locate("")
        check_file(file, "list of faces", "give --data.path a CSV file with the columns path and age")
        table = read_csv(file)
        known = set(table.header)
        anchors = None
        if known.issuperset(_BOX) and self.alignment != "none":
            x0, y0, x1, y1 = table.numbers(_BOX).T
            anchors = list(np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2))
        elif self.alignment in ("box", "landmarks"):
            raise LDLError(f"{file} has no columns {', '.join(_BOX)}; set data.alignment: none to take pictures whole")
        return FaceRecords(
            file.parent,
            table.column("path"),
            table.numbers(["age"])[:, 0],
            np.array(table.column("person")) if "person" in known else None,
            anchors,
            table.numbers(["sigma"])[:, 0] if "sigma" in known else None,
        )
