"""IMDB-clean (Lin et al., IEEE Access 2021): faces of IMDB-WIKI whose ages were mended, by person."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ldl.data.csv_table import read_csv
from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import PARTS, Release
from ldl.errors import LDLError

_PERSON = re.compile(r"(nm\d+)_")
_FOLDERS = {"_new_1024": ("imdb-clean-1024", "imdb-clean-1024/imdb-clean-1024", ""), "_new": ("imdb", "")}
"""Endings of the tables, whose boxes are in pixels of the pictures in one of the folders."""


def read(folder: Path, listed: Path | None = None) -> FaceRecords:
    """List the tables ``imdb_PART_new_1024.csv``, else ``imdb_PART_new.csv``, with boxes and persons.

    Persons of train and val overlap as published; those of test are in neither. Raises LDLError.
    """
    ending = next((end for end in _FOLDERS if (folder / f"imdb_train{end}.csv").is_file()), None)
    if ending is None:
        raise IMDB_CLEAN.absent(folder, "no imdb_train_new_1024.csv or imdb_train_new.csv")
    files: list[str] = []
    ages, boxes, parts = [], [], []
    for part, ours in PARTS.items():
        table = read_csv(folder / f"imdb_{part}{ending}.csv")
        files += table.column("filename")
        ages.append(table.numbers(["age"])[:, 0])
        boxes.append(table.numbers(["x_min", "y_min", "x_max", "y_max"]))
        parts += [ours] * len(table.rows)
    persons = [_PERSON.match(Path(file).name) for file in files]
    if None in persons:
        stranger = files[persons.index(None)]
        raise LDLError(f"{stranger} is not named as IMDB-clean's 00/nm0000100_rm46373120_1955-1-6_2003.jpg")
    above = next((name for name in _FOLDERS[ending] if files and (folder / name / files[0]).is_file()), "")
    x0, y0, x1, y1 = np.concatenate(boxes).T
    return FaceRecords(
        folder,
        [f"{above}/{file}".lstrip("/") for file in files],
        np.concatenate(ages),
        np.array([person[1] for person in persons if person]),
        list(np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)),
        facts={"part": np.array(parts)},
    )


IMDB_CLEAN = Release(
    "IMDB-clean",
    "https://github.com/yiminglin-ai/imdb-clean",
    "academic research",
    "imdb_train_new_1024.csv, also valid and test, and imdb-clean-1024/00/nm0000100_rm46373120_1955-1-6_2003.jpg",
    read,
)
