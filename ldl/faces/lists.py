"""Read and write lists of face images: CSV lists, JSON files of boxes and folders whose file names begin with ages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np

from ldl.data.images.records import ImageRecords
from ldl.data.names import find_group, find_split, split_sets
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError, explaining
from ldl.tables.csv_table import CsvTable, read_csv
from ldl.tables.entries import to_numbers
from ldl.validation.files import as_stored, check_file, read_text, visible

BOX = ("x0", "y0", "x1", "y1")
"""Columns of an upright box: its left, upper, right and lower side."""

CORNERS = tuple(f"{axis}{corner}" for corner in range(4) for axis in "xy")
"""Columns of the corners of a box, clockwise from the face's upper left."""

NO_PERSON = "which is no name; give each unknown person a name of its own"


def read_face_list(
    file: Path,
    whole: bool = False,
    group_key: str | None = None,
    split_column: str | None = None,
    splits: bool = True,
    alone: bool = False,
) -> ImageRecords:
    """Read a CSV list of faces; see :class:`ldl.data.FaceFolder` for its columns.

    Args:
        file: The list.
        whole: Ignore boxes.
        group_key: Column of the persons; None takes the only usual one.
        split_column: Column of the sets of a published split, likewise.
        splits: Whether the sets of a published split are read.
        alone: Ignore persons and sets, as of images that are in every training set.

    Raises:
        LDLError: The file or a column is missing, an entry is not a number, or a face is listed twice.
    """
    check_file(file, "list of faces", "give --data.path a CSV file with the columns path and age")
    table = read_csv(file)
    header = set(table.header)
    paths, anchors = [as_stored(name, file.parent) for name in table.column("path")], None
    if header.issuperset(BOX) and not whole:
        anchors = list(_corners(table))
    _check_repeats(table, paths, anchors)
    split = None if alone else find_split(file, table.header, split_column)
    person = None if alone else find_group(file, [name for name in table.header if name != split], group_key)
    facts: dict[str, np.ndarray] = {}
    if split is not None and splits:
        facts["part"] = split_sets(file, split, table.groups(split))
    if "folder" in header:
        facts["folder"] = np.array(table.column("folder"))
    columns: dict[str, str] = {name: name for name in ("path", "age", "sigma", "folder") if name in header}
    columns |= {fact: column for fact, column in (("person", person), ("part", split)) if column is not None}
    columns |= {name: name for name in table.header if anchors and name in CORNERS}
    return ImageRecords(
        file.parent,
        paths,
        table.numbers(["age"])[:, 0],
        None if person is None else table.groups(person, NO_PERSON),
        anchors,
        table.numbers(["sigma"])[:, 0] if "sigma" in header else None,
        facts,
        columns=columns,
        left_out=[name for name in table.header if name not in columns.values()],
    )


def write_face_list(records: ImageRecords, file: Path) -> None:
    """Write a CSV list for ``FaceFolder`` with absolute paths and every known column. Raises LDLError."""
    import pandas  # takes a second

    def in_text(numbers: np.ndarray) -> list[str]:
        return [f"{number:g}" for number in numbers]

    columns: dict[str, Any] = {"path": [str(path.absolute()) for path in records.paths()]}
    columns["age"] = in_text(records.values)
    if records.groups is not None:
        columns["person"] = records.groups
    if records.sigmas is not None:
        columns["sigma"] = in_text(records.sigmas)
    if records.anchors is not None:
        columns |= zip(CORNERS, map(in_text, np.array(records.anchors).reshape(-1, 8).T))
    with explaining(f"the list {file} cannot be written", "give another --out", (OSError,)):
        pandas.DataFrame(columns | records.facts).to_csv(file, index=False)


def read_named_faces(folder: Path) -> ImageRecords:
    """List the images of a folder whose names begin with the age, as in UTKFace. Raises LDLError for other names."""
    paths = list_pictures(folder)
    ages = [path.name.partition("_")[0] for path in paths]
    for path, age in zip(paths, ages):
        if not (age.isascii() and age.isdecimal()):
            raise LDLError(f"{path} does not begin with an age; UTKFace's names are age_gender_race_date.jpg")
    files = [path.relative_to(folder).as_posix() for path in paths]
    return ImageRecords(folder, files, np.array([float(age) for age in ages]))


def box_name(path: str) -> str:
    """Return the key of an image in a file of boxes: its lower-case name without folder and ending."""
    return normalize("NFC", Path(path).stem.lower())


def read_boxes(path: Path) -> dict[str, np.ndarray]:
    """Read face boxes in the JSON format of the Facial Age Estimation Benchmark (Paplham & Franc, CVPR 2024).

    Returns:
        By :func:`box_name` the corners (4, 2), clockwise from the face's upper left.

    Raises:
        LDLError: The file is missing, an entry lacks ``img_path`` or ``aligned_bbox`` (x0 y0 ... x3 y3), or one name
            has two boxes.
    """
    boxes: dict[str, np.ndarray] = {}
    paths: dict[str, str] = {}
    for number, entry in enumerate(read_entries(path, "file of boxes", "correct data.boxes")):
        try:
            name = box_name(entry["img_path"])
            box = to_numbers(np.array(entry["aligned_bbox"], object), "boxes are").reshape(4, 2)
            if not np.isfinite(box).all():
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise LDLError(
                f"{path}: entry {number} needs img_path and aligned_bbox of eight numbers, got {str(entry)[:100]}"
            ) from None
        if name in boxes and not np.array_equal(boxes[name], box):
            raise LDLError(
                f"{path}: {paths[name]} and {entry['img_path']} have the same name and different boxes; give images "
                "names of their own, and one box each"
            )
        boxes[name], paths[name] = box, entry["img_path"]
    return boxes


def read_entries(path: Path, content: str, fix: str) -> list[Any]:
    """Read a JSON file as a list of entries. Raises LDLError with the ``content`` of the file and the ``fix``."""
    text = read_text(path, content, fix)
    with explaining(f"{path} cannot be read as JSON", errors=(ValueError, RecursionError)):
        entries = json.loads(text)
    return entries if isinstance(entries, list) else [entries]


def spelled_as_on_disk(folder: Path, files: Sequence[str]) -> list[str]:
    """Correct the case of paths, and drop as many of their first folders as needed to find one of the images."""
    stored = {path.relative_to(folder).as_posix() for path in visible(folder, "**/*")}
    spelled = {file.lower(): file for file in stored}
    for dropped in range(max((len(Path(file).parts) for file in files), default=0)):
        shorter = ["/".join(Path(file).parts[dropped:]) for file in files]
        if any(short.lower() in spelled for short in shorter):
            return [spelled.get(short.lower(), short) for short in shorter]
    return list(files)


def _check_repeats(table: CsvTable, paths: list[str], anchors: Sequence[np.ndarray] | None) -> None:
    # Folds could put a face that is listed twice into both the training and the test set.
    seen: dict[tuple[str, bytes], int] = {}
    for row, path in enumerate(paths):
        face = normalize("NFC", path), b"" if anchors is None else anchors[row].tobytes()
        if (first := seen.setdefault(face, row)) != row:
            written = table.column("path")[row]
            raise LDLError(
                f"{table.where(row)} lists {written} again, after line {table.lines[first]}; keep one of them"
            )


def _corners(table: CsvTable) -> np.ndarray:
    if set(CORNERS) <= set(table.header):
        return table.numbers(CORNERS).reshape(-1, 4, 2)
    sides = table.numbers(BOX)
    if len(wrong := np.flatnonzero((sides[:, 2:] <= sides[:, :2]).any(1))):
        box = ", ".join(f"{name} {side:g}" for name, side in zip(BOX, sides[wrong[0]]))
        raise LDLError(
            f"{table.where(wrong[0])}: the box {box} ends before it begins ({len(wrong)} such lines); x1 and y1 are "
            "the lower right corner, such as x + width and y + height"
        )
    return upright_corners(sides)


def upright_corners(sides: np.ndarray) -> np.ndarray:
    """Return the corners (N, 4, 2) of upright boxes (N, 4), clockwise from the upper left."""
    x0, y0, x1, y1 = sides.T
    return np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)
