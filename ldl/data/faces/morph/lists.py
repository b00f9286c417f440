"""Published lists of MORPH's pictures: reading them, and finding the pictures they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ldl.collective import process_rank
from ldl.data.csv_table import CsvTable, read_csv
from ldl.data.faces.morph.names import EXAMPLE, parse_name, stem
from ldl.data.faces.protocols import Cut
from ldl.data.faces.records import FaceRecords
from ldl.data.files import check_file
from ldl.errors import LDLError


@dataclass(frozen=True)
class SplitList:
    """One list.

    Attributes:
        path: Its file.
        stems: (N,) names of the pictures, in lower case without ending.
        folds: (N,) the fold of each, or None where the list has no such column.
        races: (N,) letters such as B and W, or None where the list has none; some lists have numbers instead,
            whose meaning differs from list to list.
    """

    path: Path
    stems: list[str]
    folds: np.ndarray | None = None
    races: list[str] | None = None


def read_list(path: Path) -> SplitList:
    """Read a list: a picture a line, with commas or with blanks between the columns, with or without header.

    The pictures' names are found by their form. Ages and genders are not read: lists code them differently, and
    every name has both. Raises LDLError: no such list, a line without a picture's name or with another number of
    fields, a picture named twice, a fold that is no number.
    """
    check_file(path, "list", "correct data.split_list")
    table = read_rows(path)
    names = next((place for place, cell in enumerate(table.rows[0]) if parse_name(cell)), None) if table.rows else None
    if names is None:
        raise LDLError(f"{path} names no pictures such as {EXAMPLE}; give a list of MORPH in data.split_list")
    for number, row in enumerate(table.rows):
        if not parse_name(row[names]):
            table.refuse(number, names, f"no picture such as {EXAMPLE}")
    stems = [stem(row[names]) for row in table.rows]
    if len(set(stems)) < len(stems):
        raise LDLError(f"{path} names the picture {Counter(stems).most_common(1)[0][0]} twice; remove one line")
    races = table.column("race") if "race" in table.header else []
    return SplitList(
        path,
        stems,
        _folds(table) if "fold" in table.header else None,
        [race.upper() for race in races] if races and not any(race.isdecimal() for race in races) else None,
    )


def read_rows(path: Path) -> CsvTable:
    """A list with its header in lower case; a file that begins with a picture has none. Raises LDLError."""
    table = read_csv(path, has_header=lambda first: not any(map(parse_name, first)), blanks=True)
    return replace(table, header=[name.lower() for name in table.header])


def named_records(folder: Path, files: dict[str, str], races: dict[str, str]) -> FaceRecords:
    """Records of ``files`` below ``folder``, whose names say all but the race; both are by stem.

    They are in the order of their names, so that a protocol draws the same pictures wherever they lie.
    """
    stems = sorted(files)
    names = [name for name in map(parse_name, stems) if name]
    facts = {"gender": np.array([name.gender for name in names])}
    if any(name in races for name in stems):
        facts["race"] = np.array([races.get(name, "") for name in stems])
    return FaceRecords(
        folder,
        [files[name] for name in stems],
        np.array([float(name.age) for name in names]),
        np.array([name.person for name in names], dtype=np.int64),
        facts=facts,
    )


def match(listed: Sequence[SplitList], cut: Cut) -> list[np.ndarray]:
    """The rows of the pictures that each list names, in its order; -1 of those that may be missing, else LDLError."""
    where = {stem(file): row for row, file in enumerate(cut.records.files)}
    for one in listed:
        if missing := [name for name in one.stems if name not in where]:
            what = f"{len(missing)} of {len(one.stems)} pictures of {one.path} are not there, the first: {missing[0]}"
            if not cut.skip_missing:
                raise LDLError(f"{what}; add them, or leave them out with --data.skip_unreadable true")
            if process_rank() == 0:
                print(what, flush=True)
    return [np.array([where.get(name, -1) for name in one.stems], dtype=np.int64) for one in listed]


def _folds(table: CsvTable) -> np.ndarray:
    folds = table.numbers(["fold"])[:, 0]
    if len(wrong := np.flatnonzero((folds < 0) | (folds % 1 > 0))):
        table.refuse(wrong[0], table.place("fold"), "no number of a fold, which are 0, 1, 2, ...")
    return folds.astype(int)
