"""Pictures of one's own: a CSV file of path and age."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ldl.data.faces.ages import FaceAges
from ldl.data.faces.protocols import HOLDOUT, LEAVE_ONE_PERSON_OUT, STRATIFIED, SUBJECT_EXCLUSIVE
from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError, did_you_mean

_BOX = ("x0", "y0", "x1", "y1")
_COLUMNS = ("path", "age", "person", "sigma", *_BOX)


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

    def read(self) -> FaceRecords:
        """Read the list. Raises LDLError for a missing file or column, or a field that is no number."""
        if self.path is None:
            raise LDLError("FaceFolder needs --data.path, a CSV file with the columns path and age")
        file = self.locate("")
        columns = _read_columns(file)
        ages = _numbers(file, "age", columns["age"])
        persons = np.array(columns["person"]) if "person" in columns else None
        sigmas = _numbers(file, "sigma", columns["sigma"]) if "sigma" in columns else None
        anchors = None
        if all(name in columns for name in _BOX) and self.alignment != "none":
            x0, y0, x1, y1 = (_numbers(file, name, columns[name]) for name in _BOX)
            anchors = list(np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2))
        elif self.alignment in ("box", "landmarks"):
            raise LDLError(f"{file} has no columns {', '.join(_BOX)}; set data.alignment: none to take pictures whole")
        return FaceRecords(file.parent, columns["path"], ages, persons, anchors, sigmas)


def _read_columns(file: Path) -> dict[str, list[str]]:
    if not file.is_file():
        raise LDLError(f"no list of faces at {file}; give --data.path a CSV file with the columns path and age")
    with file.open(newline="", encoding="utf-8-sig") as stream:
        rows = [[field.strip() for field in row] for row in csv.reader(stream) if any(row)]
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    for needed in ("path", "age"):
        if needed not in header:
            raise LDLError(
                f"{file} has no column {needed!r}{did_you_mean(needed, header)}; its columns are {', '.join(header)}"
            )
    for line, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise LDLError(f"{file}: line {line} has {len(row)} fields, the header {len(header)}")
    return {name: [row[column] for row in body] for column, name in enumerate(header) if name in _COLUMNS}


def _numbers(file: Path, name: str, fields: list[str]) -> np.ndarray:
    numbers = np.empty(len(fields))
    for row, field in enumerate(fields):
        try:
            numbers[row] = float(field)
        except ValueError:
            numbers[row] = np.nan
        if not np.isfinite(numbers[row]):
            raise LDLError(f"{file}: row {row}, column {name!r} is {field!r}, not a number")
    return numbers
