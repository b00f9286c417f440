"""Lists of face pictures and their ages: a CSV file, or a folder of pictures whose names begin with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import normpath
from pathlib import Path

import numpy as np

from ldl.data.csv_table import CsvTable, read_csv
from ldl.data.faces.detection.rows import BOX
from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import CORNERS
from ldl.data.files import check_file
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError

FACTS = {"part": ("train|val|test", "train, val or test"), "folder": (r"\d+", "a number from 0 on")}
"""Columns that protocols ask for, the pattern of their fields, and what it allows."""
NOBODY = "which names nobody; give each unknown person a name of its own"


def read_face_list(file: Path, whole: bool = False) -> FaceRecords:
    """Read a list, whose columns :class:`ldl.data.FaceFolder` explains.

    Pictures are taken ``whole``, without the boxes of the list, where that is asked for. Raises LDLError for a missing
    file or column, a field that is no number, and a face that is listed twice.
    """
    check_file(file, "list of faces", "give --data.path a CSV file with the columns path and age")
    table = read_csv(file)
    known = set(table.header)
    anchors = list(_corners(table)) if known.issuperset(BOX) and not whole else None
    _refuse_repeats(table, anchors)
    return FaceRecords(
        file.parent,
        table.column("path"),
        table.numbers(["age"])[:, 0],
        np.array(table.filled("person", NOBODY)) if "person" in known else None,
        anchors,
        table.numbers(["sigma"])[:, 0] if "sigma" in known else None,
        {name: _fact(table, name) for name in FACTS if name in known},
    )


def read_named_faces(folder: Path) -> FaceRecords:
    """The pictures of a folder, named as UTKFace's. Raises LDLError for a name that does not begin with an age."""
    paths = list_pictures(folder)
    ages = [path.name.partition("_")[0] for path in paths]
    for path, age in zip(paths, ages):
        if not age.isdecimal():
            raise LDLError(f"{path} does not begin with an age; UTKFace's names are age_gender_race_date.jpg")
    files = [path.relative_to(folder).as_posix() for path in paths]
    return FaceRecords(folder, files, np.array([float(age) for age in ages]))


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
