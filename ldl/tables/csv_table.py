"""Reading CSV files with pandas; messages name the file, the line and the column."""

from __future__ import annotations

import csv
import io
import re
import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ldl.errors import LDLError, did_you_mean, explaining
from ldl.tables.entries import (
    LARGEST,
    MISSING,
    as_matrix,
    as_text,
    check_distinct_names,
    is_text,
    map_distinct,
    read_number,
    spelling,
)
from ldl.validation.files import kind_of, read_utf8

MARKS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Separators of fields, by the suffixes of files."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators of other programs, which a message suggests to replace."""
SPELLED = [*MISSING, *map(str.upper, MISSING), "NaN", "NaT", "None", "Null"]
"""Spellings of missing fields that pandas recognises; it distinguishes upper and lower case."""
BLANKS = "".join(filter(str.isspace, map(chr, range(128))))
"""Blanks of ASCII."""
LINE_FEED, QUOTE = b'\n"'
"""Bytes that end a row and that quote a field."""
BLOCK_BYTES = 2**20
"""Bytes of a file in which rows are searched at a time; a block fits into the cache of a processor."""
FIRST_BYTES = 16
"""First bytes of a row in which most rows show that they are not empty."""
NO_GROUP = "which is no name of a group; give every row one, of its own where it belongs to none"


@dataclass(frozen=True)
class CsvTable:
    """The columns of a CSV file, which pandas reads on demand.

    Attributes:
        path: The file.
        header: Names of the columns; in a file without a header their numbers, from 1.
        lines: (N,) line on which each row begins, from 1. Empty rows are left out.
        records: (N,) number of each row among all rows of the text, from 0.
        content: Text of the file in UTF-8, with a line feed at each line's end.
        separator: Character between fields.
    """

    path: Path
    header: list[str]
    lines: np.ndarray
    records: np.ndarray
    content: bytes
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
        return self._read([self.position(name) for name in names], **options).set_axis(list(names), axis=1)

    def column(self, name: str) -> list[str]:
        """Return the fields of one column without blanks around them. Raises LDLError if it is absent."""
        return list(map(str.strip, self.texts([name])[name].to_numpy(object)))

    def texts(self, names: Sequence[str]) -> Any:
        """Return columns as a pandas DataFrame of text. Raises LDLError if one is absent."""
        import pandas  # takes a second

        position_of = {name: self.position(name) for name in names}
        if unread := [position for position in position_of.values() if position not in self._texts]:
            self._texts.update(self._read(unread, dtype=str, na_filter=False).reset_index(drop=True).items())
        columns = {name: self._texts[position] for name, position in position_of.items()}
        return pandas.DataFrame(columns, index=range(len(self)))

    def groups(self, name: str, why: str = NO_GROUP) -> np.ndarray:
        """Return the :func:`spelling` of one column, (N,). Raises LDLError, with ``why``, if one is missing."""
        spelled = map_distinct(spelling, self.texts([name])[name])
        missing = map_distinct(lambda text: text.lower() in MISSING, spelled).astype(bool)
        if missing.any():
            self.refuse(int(missing.argmax()), name, why)
        return spelled.astype(str)

    def numbers(self, names: Sequence[str], hint: str = "", missing: bool = False) -> np.ndarray:
        """Return columns as a (rows, columns) float64 matrix.

        Args:
            names: Names of the columns.
            hint: Addition to the message about a field that is not a number.
            missing: Accept missing fields as NaN (:mod:`ldl.tables.entries`).

        Raises:
            LDLError: A column is absent, or a field is not a finite number.
        """
        return as_matrix(self.columns(names, hint, missing, text=False))

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
        import pandas

        place_of = {name: self.position(name) for name in names}
        texts = self.texts([name for name, place in place_of.items() if place not in self._numbers])
        columns: dict[str, Any] = {}
        wrong: list[tuple[int, str]] = []
        for name, place in place_of.items():
            if name in texts:
                numbers = map_distinct(read_number, texts[name]).astype(np.float64)
            else:
                numbers = self._numbers[place].astype(np.float64, copy=False)
            if text and name in texts and is_text(numbers):
                columns[name] = map_distinct(lambda field: as_text(field) or None, texts[name])
                continue
            bad = ~(np.abs(numbers) <= LARGEST)
            bad &= ~(missing & np.isnan(numbers))
            if bad.any():
                wrong.append((int(bad.argmax()), name))
            columns[name] = numbers
        if wrong:
            row, name = min(wrong, key=lambda field: field[0])
            reason = "more than 1e100" if np.isfinite(columns[name][row]) else "not a finite number"
            self.refuse(row, name, f"{reason}{hint}")
        return pandas.DataFrame(columns, index=range(len(self)), copy=False)

    @cached_property
    def _numbers(self) -> dict[int, np.ndarray]:
        """The columns (N,) in which pandas reads numbers alone, NaN if missing, by their positions."""
        frame = self._read(range(len(self.header)), low_memory=True)
        return {position: column.to_numpy() for position, column in frame.items() if column.dtype.kind in "fiub"}

    @cached_property
    def _texts(self) -> dict[int, Any]:
        """The columns that were read as text, by their positions."""
        return {}

    def _read(self, positions: Sequence[int], **options: Any) -> Any:
        """Return columns as a pandas DataFrame, named by their positions; see :meth:`frame`. Raises LDLError."""
        import pandas

        if not (len(self) and positions):
            return pandas.DataFrame({position: [] for position in positions}, index=range(len(self)))
        if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):  # later versions round as Python does
            options["float_precision"] = "round_trip"
        with (
            explaining(f"{self.path} cannot be read as CSV", errors=(pandas.errors.ParserError,)),
            warnings.catch_warnings(),
        ):
            # Of a column with numbers in one block and text in another, which is read again as text.
            warnings.simplefilter("ignore", pandas.errors.DtypeWarning)
            frame = pandas.read_csv(
                io.BytesIO(self.content),
                sep=self.separator,
                header=None,
                names=range(len(self.header)),
                usecols=positions,
                skiprows=int(self.records[0]),
                skip_blank_lines=False,
                keep_default_na=False,
                **{"na_values": SPELLED, "low_memory": False, **options},
            )
        rows = self.records - self.records[0]
        frame = frame if len(rows) == len(frame) else frame.iloc[rows]
        # Selecting columns takes seconds if there are many.
        return frame if list(frame.columns) == list(positions) else frame[list(positions)]

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
    content = read_utf8(path)
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n")
        content = re.sub(rb"\r*\n|\r", b"\n", content) if b"\r" in content else content
    if blanks:
        content = _without_blanks(content.decode(), mark).encode()
    return parse_csv(path, content, has_header, mark)


def _without_blanks(text: str, mark: str) -> str:
    """Return a text with separators in place of blanks, unless its first row has separators."""
    if mark in next(filter(str.strip, io.StringIO(text)), ""):
        return text
    return "\n".join(mark.join(line.split()) for line in text.split("\n"))


def parse_csv(
    path: Path, content: bytes, has_header: Callable[[list[str]], bool] = lambda row: True, mark: str = ","
) -> CsvTable:
    """Return the table in a text, with a line feed at each line's end; see :func:`read_csv`. Raises LDLError.

    Args:
        path: Origin of the text, for messages.
        content: The text in UTF-8.
        has_header: Returns whether the first row names the columns.
        mark: Separator of the fields.
    """
    first, records, lines, widths = _find_rows(content, mark) or _read_rows(path, content, mark)
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
    return CsvTable(path, header, lines[int(named) :], records[int(named) :], content, mark)


class _RowIndex(NamedTuple):
    """Fields of the first row; then of each row that is not empty its number among all, its line, and its width."""

    first: list[str]
    records: np.ndarray
    lines: np.ndarray
    widths: np.ndarray


def _find_rows(content: bytes, mark: str) -> _RowIndex | None:
    """Return the rows of a text by the places of separators, quotes and line feeds.

    Return None if the csv reader has to decide: a field is longer than it takes, or a quote stands neither at the start
    nor at the end of a field and is not doubled.
    """
    content = content if content.endswith(b"\n") else content + b"\n"
    letters = np.frombuffer(content, np.uint8)
    borders = np.zeros(256, bool)
    borders[[ord(mark), LINE_FEED, QUOTE]] = True
    parts = []
    quotes = separators = breaks = 0
    for start in range(0, len(letters), BLOCK_BYTES):
        block = letters[start : start + BLOCK_BYTES]
        places = np.flatnonzero((block == ord(mark)) | (block == LINE_FEED) | (block == QUOTE))
        kinds = block[places]
        is_quote, is_break = kinds == QUOTE, kinds == LINE_FEED
        # Between an odd quote and the next one, separators and line feeds belong to the field.
        number = quotes + np.cumsum(is_quote)
        inside = number % 2 == 1
        odd, even = (start + places[is_quote & side] for side in (inside, ~inside))
        if not (borders[letters[odd[odd > 0] - 1]].all() and borders[letters[even + 1]].all()):
            return None
        separator = separators + np.cumsum((kinds == ord(mark)) & ~inside)
        line = breaks + np.cumsum(is_break)
        end = np.flatnonzero(is_break & ~inside)
        parts.append(np.stack([start + places[end], separator[end], line[end]]))
        if len(places):
            quotes, separators, breaks = number[-1], separator[-1], line[-1]
    ends, separator, line = np.concatenate(parts, 1)
    starts = np.concatenate([[0], ends + 1])[:-1]
    if quotes % 2 or (ends - starts).max() > csv.field_size_limit():
        return None
    records = np.flatnonzero(~_are_empty(content, starts, ends, mark))
    first = _fields(content[starts[records[0]] : ends[records[0]]], mark) if len(records) else []
    lines = np.concatenate([[0], line[:-1]]) + 1
    widths = np.diff(separator, prepend=0) + 1
    return _RowIndex(list(map(str.strip, first)), records, lines[records], widths[records])


def _are_empty(content: bytes, starts: np.ndarray, ends: np.ndarray, mark: str) -> np.ndarray:
    """Return which rows, from their starts to their ends (R,), have blank fields alone, (R,) bool."""
    letters, visible = np.frombuffer(content, np.uint8), np.zeros(256, bool)
    visible[:128] = True
    visible[[QUOTE, *map(ord, f"{mark}{BLANKS}")]] = False
    rows = np.arange(len(starts))
    for place in range(FIRST_BYTES):
        rows = rows[~visible[letters[np.minimum(starts[rows] + place, ends[rows])]]]
    empty = np.zeros(len(starts), bool)
    empty[rows] = [_is_empty(_fields(content[starts[row] : ends[row]], mark)) for row in rows]
    return empty


def _is_empty(fields: list[str]) -> bool:
    """Return whether all fields of a row are blank. pandas writes "" for a missing entry of an only column."""
    return fields != [""] and not any(map(str.strip, fields))


def _fields(row: bytes, mark: str) -> list[str]:
    """Return the fields of one row, which may have several lines."""
    return next(csv.reader(io.StringIO(row.decode()), delimiter=mark), [])


def _read_rows(path: Path, content: bytes, mark: str) -> _RowIndex:
    """Return the rows of any text by the csv reader. Raises LDLError if it is no CSV."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="\n"), delimiter=mark)
    first: list[str] = []
    numbers = array("q")  # lists of numbers would take more memory than the text
    line = 1
    try:
        for record, row in enumerate(reader):
            if not _is_empty(row):
                first = first or list(map(str.strip, row))
                numbers.extend((record, line, len(row)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise LDLError(f"{path}: line {reader.line_num} cannot be read as CSV: {error}") from None
    records, lines, widths = np.array(numbers, np.int64).reshape(-1, 3).T.copy()
    return _RowIndex(first, records, lines, widths)
