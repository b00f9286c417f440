"""Reading CSV files: one way to count lines, one wording for what is wrong with them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np

from ldl.data.files import read_text
from ldl.errors import LDLError, did_you_mean

LARGEST = 1e100
"""Greater numbers are mistakes of writing, and overflow where they are squared."""
MISSING = ("", "nan", "na", "null", "none", "?")
"""How a field says that nothing is known, in small letters."""
MARKS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""What stands between fields in files of other programs."""


@dataclass(frozen=True)
class CsvTable:
    """The fields of a file, without blanks around them.

    Attributes:
        path: The file.
        header: Names of the columns; of a file without header their numbers, from 1.
        rows: Fields of every row, as many as the header has; rows without any text are left out.
        lines: On which line of the file each row begins; the first line is 1.
    """

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def place(self, name: str) -> int:
        """Where a column stands. Raises LDLError where there is none of this name, or more than one."""
        places = self._places.get(name, [])
        if not places:
            near, there = did_you_mean(name, self.header), ", ".join(self.header) or "none"
            raise LDLError(f"{self.path} has no column {name!r}{near}; its columns are {there}")
        if len(places) > 1:
            raise LDLError(f"{self.path}: column {name!r} is there twice; give every column a name of its own")
        return places[0]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Where the columns of each name stand."""
        places: dict[str, list[int]] = {}
        for place, name in enumerate(self.header):
            places.setdefault(name, []).append(place)
        return places

    def column(self, name: str) -> list[str]:
        """The fields of one column. Raises LDLError."""
        place = self.place(name)
        return [row[place] for row in self.rows]

    def filled(self, name: str, why: str) -> list[str]:
        """The fields of one column. Raises LDLError, with ``why``, where one is empty."""
        fields = self.column(name)
        if "" in fields:
            self.refuse(fields.index(""), self.place(name), why)
        return fields

    def numbers(self, names: Sequence[str] | None = None, hint: str = "", missing: bool = False) -> np.ndarray:
        """Some columns, or all of them whatever they are called, as a (rows, columns) float64 matrix.

        With ``missing`` a field that is empty, or one of ``MISSING``, is NaN. Raises LDLError for a missing or doubled
        column, or a field that is no finite number, with ``hint`` added.
        """
        places = range(len(self.header)) if names is None else [self.place(name) for name in names]
        matrix = np.array([[_number(row[place]) for place in places] for row in self.rows])
        matrix = matrix.reshape(len(self.rows), len(places))
        for row, column in np.argwhere(~(np.abs(matrix) <= LARGEST)):
            if missing and self.rows[row][places[column]].lower() in MISSING:
                continue
            what = "more than 1e100" if np.isfinite(matrix[row, column]) else "not a finite number"
            self.refuse(row, places[column], f"{what}{hint}")
        return matrix

    def refuse(self, row: int, place: int, why: str) -> NoReturn:
        """Raise LDLError for one field: its line, its column, its text, and why it is wrong."""
        field = self.rows[row][place][:80]
        raise LDLError(f"{self.where(row)}, column {self.header[place]!r} is {field!r}, {why}")

    def where(self, row: int) -> str:
        """The file and the line of a row, for messages."""
        return f"{self.path}: line {self.lines[row]}"

    def without(self, *names: str) -> CsvTable:
        """The table without some columns. Raises LDLError where they are not there."""
        dropped = {self.place(name) for name in names}
        kept = [place for place in range(len(self.header)) if place not in dropped]
        rows = [[row[place] for place in kept] for row in self.rows]
        return CsvTable(self.path, [self.header[place] for place in kept], rows, self.lines)

    def features(self, *others: str) -> CsvTable:
        """The table without the columns that are no features. Raises LDLError where a feature has no name."""
        rest = self.without(*others)
        if "" in rest.header:
            raise LDLError(
                f"{self.path}: column {self.header.index('') + 1} has no name; give it one, or leave it out: pandas "
                "writes no row numbers with index=False"
            )
        return rest


def read_csv(path: Path, has_header: Callable[[list[str]], bool] = lambda row: True, blanks: bool = False) -> CsvTable:
    """Read a file of fields with commas between them; ``has_header`` tells whether the first row names the columns.

    With ``blanks`` columns have blanks between them where the first row has no comma; the first column of row numbers
    that pandas writes has then no name, and gets an empty one. Raises LDLError: a file that cannot be read or is no
    UTF-8, or with something else than commas between its fields, or a row with more or fewer fields than the first.
    """
    text, commas = _lines(path, blanks)
    records = list(_records(path, text, commas))
    lines, rows = [line for line, _ in records], [row for _, row in records]
    first = rows[0] if rows else []
    named = has_header(first)
    if named and commas and len(first) == 1 and (mark := next((mark for mark in MARKS if mark in first[0]), None)):
        raise LDLError(
            f"{path}: {MARKS[mark]} stand between its fields; write it with commas, and with points in numbers, as by "
            f"pandas.read_csv(file, sep={mark!r}).to_csv(file, index=False), with decimal=',' where 1.5 is written 1,5"
        )
    if named and not commas and len(rows) > 1 and len(rows[1]) == len(first) + 1:
        first = rows[0] = ["", *first]
    for line, row in records[1:]:
        if len(row) != len(first):
            raise LDLError(f"{path}: line {line} has {len(row)} fields, line {lines[0]} has {len(first)}")
    if not named:
        return CsvTable(path, [str(number + 1) for number in range(len(first))], rows, lines)
    return CsvTable(path, first, rows[1:], lines[1:])


def read_header(path: Path, blanks: bool = False) -> list[str]:
    """The fields of the first row that is not empty, whatever comes after it; see :func:`read_csv`."""
    return next(_records(path, *_lines(path, blanks)), (1, []))[1]


def _lines(path: Path, blanks: bool) -> tuple[list[str], bool]:
    """The lines of a file, and whether commas part their fields."""
    # Copies from other systems end lines in all these ways.
    lines = [f"{line}\n" for line in re.split(r"\r*\n|\r", read_text(path))]
    return lines, not blanks or "," in next(filter(str.strip, lines), "")


def _records(path: Path, lines: list[str], commas: bool) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not empty, with the number of its first line."""
    for number, row in _parted(path, lines) if commas else enumerate(map(str.split, lines), start=1):
        if any(fields := [field.strip() for field in row]):
            yield number, fields


def _parted(path: Path, lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines)
    number = 1
    try:
        for row in reader:
            yield number, row
            number = reader.line_num + 1
    except csv.Error as error:
        raise LDLError(f"{path}: line {reader.line_num} cannot be read as CSV: {error}") from None


def _number(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        return np.nan
