"""Pictures of one's own: a CSV file of path and age."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import normpath
from pathlib import Path

import numpy as np

from ldl.data.cache import cache_root
from ldl.data.csv_table import CsvTable, read_csv
from ldl.data.faces.ages import FaceAges
from ldl.data.faces.detection.choice import find_detector
from ldl.data.faces.detection.rows import BOX, one_face_each
from ldl.data.faces.protocols import (
    FOLDERS,
    HOLDOUT,
    LEAVE_ONE_PERSON_OUT,
    PARTS,
    STRATIFIED,
    SUBJECT_EXCLUSIVE,
)
from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import CORNERS
from ldl.data.files import check_file
from ldl.errors import LDLError
from ldl.options import options

FACTS = {"part": ("train|val|test", "train, val or test"), "folder": (r"\d+", "a number from 0 on")}
"""Columns that protocols ask for, the pattern of their fields, and what it allows."""
NOBODY = "which names nobody; give each unknown person a name of its own"


@options
class FaceFolder(FaceAges):
    """Faces of one's own, listed in a CSV file: ``--data.path faces.csv``.

    Its columns: ``path`` (relative to the file), ``age`` (years), and as far as they are known ``person``,
    ``sigma`` (years; of this picture's label distribution), ``x0, y0, x1, y1`` (the face's box, in pixels; with
    ``x2, y2, x3, y3`` its four corners, clockwise from the upper left), ``part`` (train, val or test) and ``folder``
    (a number). Without boxes the pictures are taken whole, or a ``detector`` finds the face in each: the largest one.
    ``ldl faces`` writes such lists of sets that others hand out.

    Protocols: ``stratified`` (``folds`` folds with the same mix of ages; whole persons where the file has them);
    ``leave_one_person_out``; ``subject_exclusive`` (refused where persons are not known); ``holdout`` (a random tenth);
    ``parts`` (those of the column ``part``); ``folders`` (the five splits of the Facial Age Estimation Benchmark: six
    folders to train on, two for validation, two to test on; of three folders one each).

    Args:
        detector: What finds the faces: ``mtcnn``, or an ONNX file of a detector with the outputs of YuNet or UltraFace.
            Pictures without a face are refused, or left out with ``skip_unreadable``.
    """

    protocols = {
        "stratified": STRATIFIED,
        "subject_exclusive": SUBJECT_EXCLUSIVE,
        "leave_one_person_out": LEAVE_ONE_PERSON_OUT,
        "holdout": HOLDOUT,
        "parts": PARTS,
        "folders": FOLDERS,
    }
    age_range = (0, 100)
    unused = ("boxes",)

    detector: str | None = None

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
        if known.issuperset(BOX) and self.alignment != "none":
            anchors = list(_corners(table))
        elif self.alignment in ("box", "landmarks") and self.detector is None:
            raise LDLError(
                f"{file} has no columns {', '.join(BOX)}; set data.alignment: none to take pictures whole, "
                "or data.detector: mtcnn to find the faces"
            )
        _refuse_repeats(table, anchors)
        records = FaceRecords(
            file.parent,
            table.column("path"),
            table.numbers(["age"])[:, 0],
            np.array(table.filled("person", NOBODY)) if "person" in known else None,
            anchors,
            table.numbers(["sigma"])[:, 0] if "sigma" in known else None,
            {name: _fact(table, name) for name in FACTS if name in known},
        )
        if self.detector is None:
            return records
        if anchors is not None or self.alignment == "none":
            why = (
                f"{file} says where the faces are"
                if anchors is not None
                else "data.alignment none takes pictures whole"
            )
            raise LDLError(f"{why}; leave data.detector out, or that")
        detector, cache = find_detector(self.detector), cache_root(self.cache_dir)
        return one_face_each(records, detector, self.alignment, cache, self.skip_unreadable)


def _corners(table: CsvTable) -> np.ndarray:
    """Corners (N, 4, 2) of the faces, from two opposite ones or all."""
    if set(CORNERS) <= set(table.header):
        return table.numbers(CORNERS).reshape(-1, 4, 2)
    x0, y0, x1, y1 = table.numbers(BOX).T
    return np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)


def _refuse_repeats(table: CsvTable, anchors: Sequence[np.ndarray] | None) -> None:
    """Raise LDLError for a face that is listed twice, which folds would put into training and test."""
    seen: dict[tuple[str, bytes], int] = {}
    for row, path in enumerate(table.column("path")):
        face = normpath(path), b"" if anchors is None else anchors[row].tobytes()
        if (first := seen.setdefault(face, row)) != row:
            raise LDLError(f"{table.where(row)} lists {path} again, after line {table.lines[first]}; keep one of them")


def _fact(table: CsvTable, name: str) -> np.ndarray:
    column, (pattern, allowed) = table.column(name), FACTS[name]
    for row, field in enumerate(column):
        if not re.fullmatch(pattern, field):
            table.refuse(row, table.place(name), f"not {allowed}")
    return np.array(column)
