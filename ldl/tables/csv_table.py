"""Reading CSV files with pandas; messages name the file, the line and the column."""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ldl.errors import LDLError, did_you_mean, explaining
from ldl.tables.entries import LARGEST, MISSING, as_text, check_distinct_names, is_text, read_number, spelling
from ldl.validation.files import kind_of, read_text

MARKS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Separators of fields, by the suffixes of files."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators of other programs, which a message suggests to replace."""
SPELLED = [*MISSING, *map(str.upper, MISSING), "NaN", "NaT", "None", "Null"]
"""Spellings of missing fields that pandas recognises; it distinguishes upper and lower case."""
BLANKS = "".join(filter(str.isspace, map(chr, range(128))))
"""Blanks of ASCII."""
NO_GROUP = "which is no name of a group; give every row one, of its own where it belongs to none"


@dataclass(frozen=True)
class CsvTable:
    """The columns of a CSV file, which pandas reads on demand.

    Attributes:
        path: The file.
        header: Names of the columns; in a file without a header their numbers, from 1.
        lines: (N,) line on which each row begins, from 1. Empty rows are left out.
        records: (N,) number of each row among all rows of the text, from 0.
        content: Content of the file, with a line feed at each line's end.
        separator: Character between fields.
    """

    path: Path
    header: list[str]
    lines: np.ndarray
    records: np.ndarray
    content: str
    separator: str

    def __len__(self) -> int:
        return len(self.lines)

    def position(self, name: str) -> int:
        """Return the position of a column. Raises LDLError if no column has this name."""
        if name not in self._positions:
            near, columns = did_you_mean(name, self.header), ", ".join(self.header) or "none"
            raise LDLError(f"{self.path} has no column {name!r}{near}; its columns are {columns}")
        return self._positions[name]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.header)}

    def frame(self, names: Sequence[str], **options: Any) -> Any:
        """Return columns as a pandas DataFrame, in which a column without other text has numbers, NaN if missing.

        Args:
            names: Names of the columns.
            **options: Options of ``pandas.read_csv``.

        Raises:
            LDLError: A column is absent, or the file cannot be read.
        """
        import pandas  # takes a second

        positions = [self.position(name) for name in names]
        if not (len(self) and positions):
            return pandas.DataFrame({name: [] for name in names}, index=range(len(self)))
        if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):  # later versions round as Python does
            options["float_precision"] = "round_trip"
        with explaining(f"{self.path} cannot be read as CSV", errors=(pandas.errors.ParserError,)):
            frame = pandas.read_csv(
                io.StringIO(self.content),
                sep=self.separator,
                header=None,
                names=range(len(self.header)),
                usecols=positions,
                skiprows=int(self.records[0]),
                skip_blank_lines=False,
                keep_default_na=False,
                low_memory=False,
                **{"na_values": SPELLED, **options},
            )
        rows = self.records - self.records[0]
        frame = frame if len(rows) == len(frame) else frame.iloc[rows]
        # Selecting columns takes seconds if there are many.
        frame = frame if list(frame.columns) == positions else frame[positions]
        return frame.set_axis(list(names), axis=1)

    def column(self, name: str) -> list[str]:
        """Return the fields of one column without blanks around them. Raises LDLError if it is absent."""
        return list(map(str.strip, self.frame([name], dtype=str, na_filter=False)[name]))

    def texts(self, names: Sequence[str]) -> Any:
        """Return columns as a pandas DataFrame of text. Raises LDLError if one is absent."""
        return self.frame(names, dtype=str, na_filter=False).reset_index(drop=True)

    def groups(self, name: str, why: str = NO_GROUP) -> np.ndarray:
        """Return the :func:`spelling` of one column, (N,). Raises LDLError, with ``why``, if one is missing."""
        fields = list(map(spelling, self.column(name)))
        if (row := next((row for row, field in enumerate(fields) if field.lower() in MISSING), None)) is not None:
            self.refuse(row, name, why)
        return np.array(fields, str)

    def numbers(self, names: Sequence[str], hint: str = "", missing: bool = False) -> np.ndarray:
        """Return columns as a (rows, columns) float64 matrix.

        Args:
            names: Names of the columns.
            hint: Addition to the message about a field that is not a number.
            missing: Accept missing fields as NaN (:mod:`ldl.tables.entries`).

        Raises:
            LDLError: A column is absent, or a field is not a finite number.
        """
        return np.ascontiguousarray(self.columns(names, hint, missing, text=False).to_numpy(np.float64))

    def columns(self, names: Sequence[str], hint: str = "", missing: bool = False, text: bool = True) -> Any:
        """Return columns as a pandas DataFrame: numbers as float64, and text without blanks around it, None if missing.

        Args:
            names: Names of the columns.
            hint: Addition to the message about a field that is not a number.
            missing: Accept missing numbers as NaN (:mod:`ldl.tables.entries`).
            text: Accept columns in which most fields are text.

        Raises:
            LDLError: A column is absent, or a field of a column of numbers is not a finite number.
        """
        frame = self.frame(names)
        # pandas keeps a column as text if a single field is not a number.
        odd = [name for name, kind in zip(names, frame.dtypes) if kind.kind not in "fiub"]
        texts = self.frame(odd, dtype=str, na_filter=False) if odd else frame
        parsed = {name: np.array(list(map(read_number, texts[name]))) for name in odd}
        of_text = {name for name in odd if text and is_text(parsed[name])}
        numbers = [name for name in names if name not in of_text]
        matrix = np.empty((len(self), len(numbers)))
        matrix[:] = (frame.assign(**parsed)[numbers] if odd else frame).to_numpy(np.float64)
        wrong = ~(np.abs(matrix) <= LARGEST)
        if len(bad := np.argwhere(wrong & ~np.isnan(matrix) if missing else wrong)):
            row, column = bad[0]
            reason = "more than 1e100" if np.isfinite(matrix[row, column]) else "not a finite number"
            self.refuse(row, numbers[column], f"{reason}{hint}")
        table = type(frame)(matrix, columns=numbers, copy=False)
        return table.assign(**{name: [as_text(entry) or None for entry in texts[name]] for name in of_text})[
            list(names)
        ]

    def refuse(self, row: int, name: str, why: str) -> NoReturn:
        """Raise LDLError for one field, with its line, column, text and the reason."""
        raise LDLError(f"{self.where(row)}, column {name!r} is {self.column(name)[row][:80]!r}, {why}")

    def where(self, row: int) -> str:
        """Return the file and the line of a row, for messages."""
        return f"{self.path}: line {self.lines[row]}"

    def others(self, *names: str) -> list[str]:
        """Return the names of all other columns. Raises LDLError if one of them has no name."""
        if "" in self.header:
            raise LDLError(
                f"{self.path}: column {self.header.index('') + 1} has no name; give it one, or leave it out: pandas "
                "writes no row numbers with index=False"
            )
        leave = frozenset(names)
        return [name for name in self.header if name not in leave]


def read_csv(
    path: Path,
    has_header: Callable[[list[str]], bool] = lambda row: True,
    blanks: bool = False,
    mark: str | None = None,
) -> CsvTable:
    """Read a CSV file.

    Args:
        path: The file, in UTF-8.
        has_header: Returns whether the first row names the columns.
        blanks: Accept blanks between fields if the first row has no separator.
        mark: Separator of the fields; None takes the tab for .tsv and .tab files, else the comma.

    Raises:
        LDLError: The file cannot be read, has another separator, has rows of different lengths, or has two columns of
            one name.
    """
    mark = MARKS.get(kind_of(path), ",") if mark is None else mark
    text = read_text(path)
    text = re.sub(r"\r*\n|\r", "\n", text) if "\r" in text else text
    if blanks and mark not in next(filter(str.strip, io.StringIO(text)), ""):
        text = "\n".join(mark.join(line.split()) for line in text.split("\n"))
    return parse_csv(path, text, has_header, mark)


def parse_csv(
    path: Path, text: str, has_header: Callable[[list[str]], bool] = lambda row: True, mark: str = ","
) -> CsvTable:
    """Return the table in a text, with a line feed at each line's end; see :func:`read_csv`. Raises LDLError.

    Args:
        path: Origin of the text, for messages.
        text: The text.
        has_header: Returns whether the first row names the columns.
        mark: Separator of the fields.
    """
    first, records, lines, widths = _plain_rows(text, mark) or _quoted_rows(path, text, mark)
    named = has_header(first)
    alone = named and mark in MARKS.values() and len(first) == 1
    others = SEPARATORS if mark == "," else {",": "commas"}
    if alone and (other := next((other for other in others if other in first[0]), None)):
        if mark != ",":
            raise LDLError(f"{path}: {others[other]} stand between its fields; name it .csv, or write it with tabs")
        fix = f"pandas.read_csv(file, sep={other!r}, decimal=',').to_csv(file, index=False)"
        raise LDLError(f"{path}: {SEPARATORS[other]} stand between its fields; write it with commas, as by {fix}")
    if len(wrong := np.flatnonzero(widths != len(first))):
        row = wrong[0]
        raise LDLError(f"{path}: line {lines[row]} has {widths[row]} fields, line {lines[0]} has {len(first)}")
    header = first if named else [str(number + 1) for number in range(len(first))]
    check_distinct_names(filter(None, header), str(path))
    return CsvTable(path, header, lines[int(named) :], records[int(named) :], text, mark)


class _RowIndex(NamedTuple):
    """Fields of the first row; then of each row that is not empty its number among all, its line, and its width."""

    first: list[str]
    records: np.ndarray
    lines: np.ndarray
    widths: np.ndarray


def _plain_rows(text: str, mark: str) -> _RowIndex | None:
    """Return the rows of a text in which every line is a row; None if quotes or other letters need the csv reader."""
    if '"' in text or not text.isascii():
        return None
    letters = np.frombuffer((text if text.endswith("\n") else text + "\n").encode("ascii"), np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    if (ends - starts).max() > csv.field_size_limit():
        return None
    visible = np.ones(128, np.uint8)
    visible[[ord(letter) for letter in f"{mark}{BLANKS}"]] = 0
    records = np.flatnonzero(np.logical_or.reduceat(visible[letters], starts))
    widths = 1 + np.diff(np.searchsorted(np.flatnonzero(letters == ord(mark)), ends), prepend=0)[records]
    first = text[starts[records[0]] : ends[records[0]]].split(mark) if len(records) else []
    return _RowIndex(list(map(str.strip, first)), records, records + 1, widths)


def _quoted_rows(path: Path, text: str, mark: str) -> _RowIndex:
    """Return the rows of any text. Raises LDLError if it is no CSV."""
    reader = csv.reader(io.StringIO(text), delimiter=mark)
    first: list[str] = []
    numbers = array("q")  # lists of numbers would take more memory than the text
    line = 1
    try:
        for record, row in enumerate(reader):
            if any(map(str.strip, row)) or row == [""]:  # pandas writes "" for a missing entry of an only column
                first = first or list(map(str.strip, row))
                numbers.extend((record, line, len(row)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise LDLError(f"{path}: line {reader.line_num} cannot be read as CSV: {error}") from None
    records, lines, widths = np.array(numbers, np.int64).reshape(-1, 3).T.copy()
    return _RowIndex(first, records, lines, widths)
