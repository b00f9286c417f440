"""The table of MORPH's release."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from ldl.collective import process_rank
from ldl.data.faces.morph.lists import read_rows
from ldl.data.faces.morph.names import EXAMPLE, MorphName, parse_name, stem
from ldl.errors import LDLError

RELEASE_CSV = "morph_2008_nonCommercial.csv"


def read_release(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """File, relative to the table's folder, and race of every picture, by stem.

    Names and table say the same thing twice. Where genders differ, the name is believed, and the number of such
    pictures is printed: the column is known to be coded in several ways.

    Raises LDLError: a missing column, a row with fields too few or too many, a photo whose name is not as in the
    release or contradicts the row's person or age, a photo named twice.
    """
    table = read_rows(path)
    columns = {name: table.column(name) for name in ("id_num", "race", "gender", "age", "photo")}
    files: dict[str, str] = {}
    races: dict[str, str] = {}
    genders: list[str] = []
    spelled = cache(_spellings)
    for number in range(len(table.rows)):
        row = {name: column[number] for name, column in columns.items()}
        photo = row["photo"].replace("\\", "/")
        told = _checked(table.where(number), row, photo)
        if stem(photo) in files:
            raise LDLError(f"{table.where(number)} names {photo}, which an earlier line names too; remove one")
        if row["gender"].upper()[:1] != told.gender:
            genders.append(photo)
        parent, _, base = photo.rpartition("/")
        files[stem(photo)] = f"{parent}/{spelled(path.parent / parent).get(base.lower(), base)}".lstrip("/")
        races[stem(photo)] = row["race"].upper()
    if genders and process_rank() == 0:
        print(f"{path}: {len(genders)} genders differ from the names, which are believed; the first: {genders[0]}")
    return files, races


def _checked(where: str, row: dict[str, str], photo: str) -> MorphName:
    name = parse_name(photo)
    if name is None:
        raise LDLError(f"{where} names the photo {photo!r}, which is not of the form {EXAMPLE}")
    for column, value in (("id_num", name.person), ("age", name.age)):
        try:
            agrees = int(float(row[column])) == value
        except (ValueError, OverflowError):
            agrees = False
        if not agrees:
            raise LDLError(
                f"{where} has {column} {row[column]!r}, but its photo {photo} says {value}; "
                "correct the line, or remove it"
            )
    return name


def _spellings(folder: Path) -> dict[str, str]:
    """Names in a folder by their lower case: copies made on other systems change it."""
    return {name.lower(): name for name in os.listdir(folder)} if folder.is_dir() else {}
