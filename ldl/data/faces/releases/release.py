"""What is known of a released set of faces, and the list that is made of it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldl.data.faces.records import FaceRecords
from ldl.data.pictures import list_pictures
from ldl.errors import LDLError

PARTS = {"train": "train", "valid": "val", "test": "test"}
"""What releases call their parts, and what lists do."""

CORNERS = tuple(f"{axis}{corner}" for corner in range(4) for axis in "xy")
"""Columns of the corners of a face's box, clockwise from its upper left."""


@dataclass(frozen=True)
class Release:
    """A set that others hand out.

    Attributes:
        name: What it is called.
        where: Where it is to be had.
        licence: Under which terms.
        layout: How it lies on disk.
        read: Lists it by its names and tables, without opening a picture, from its folder and the published list, if
            there is one: the pictures, of which ``facts`` may tell the ``part`` (train, val, test), or the ``folder``
            (0 to 9). Raises LDLError.
        pictures: How many pictures are handed out, where that is published.
    """

    name: str
    where: str
    licence: str
    layout: str
    read: Callable[[Path, Path | None], FaceRecords]
    pictures: int | None = None

    def absent(self, folder: Path, what: str) -> LDLError:
        """What to raise where something of the release is not there."""
        return LDLError(f"{what} in {folder.absolute()}: {self.name} lies as {self.layout}; get it from {self.where}")


def write_list(records: FaceRecords, file: Path) -> None:
    """Write a CSV file for ``FaceFolder`` that says all that is known; paths become absolute. Raises LDLError."""
    columns = {
        "path": [str(path.absolute()) for path in records.paths()],
        "age": [f"{age:g}" for age in records.values],
    }
    if records.persons is not None:
        columns["person"] = list(map(str, records.persons))
    if records.sigmas is not None:
        columns["sigma"] = [f"{sigma:g}" for sigma in records.sigmas]
    if records.anchors is not None:
        corners = np.array(records.anchors).reshape(-1, 8)
        columns |= {name: [f"{number:g}" for number in column] for name, column in zip(CORNERS, corners.T)}
    columns |= {name: list(map(str, fact)) for name, fact in records.facts.items()}
    try:
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values()))
    except OSError as error:
        raise LDLError(f"the list {file} cannot be written: {error.strerror}; give another --out") from None


def below(folder: Path) -> list[str]:
    """Paths of all pictures below a folder, relative to it. Raises LDLError where there are none."""
    return [path.relative_to(folder).as_posix() for path in list_pictures(folder)]
