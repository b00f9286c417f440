"""Files of annotation tools, opened: tables as text, JSON as objects, and the members of ZIP archives."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from ldl.errors import LDLError, explaining
from ldl.tables import open_named
from ldl.tables.csv_table import MARKS
from ldl.validation.files import check_file, kind_of, read_text

RECORDS = {".json", ".jsonl", ".ndjson"}
"""Suffixes of files of JSON."""
TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
"""A text in JSON, which stays, or a comma before a closing bracket, which some files have."""
LARGEST_MEMBER = 2**31
"""Largest unpacked size of a member of a ZIP archive, in bytes."""
FIRST_RECORDS = 20
"""Number of records whose keys are compared with those of a tool."""


@dataclass(frozen=True)
class ToolFile:
    """A file of an annotation tool, or a member of a ZIP archive.

    Attributes:
        name: Its path, for messages.
        stem: Name of the file without folder and suffix; doccano names it after the rater.
        table: Its rows, as text, if it is a table.
        records: Its objects, if it is JSON.
        keyed: Whether JSON is one object that holds the records by their keys; they are then ``key`` in each record.
    """

    name: str
    stem: str
    table: pd.DataFrame | None = None
    records: Sequence[dict[str, Any]] = ()
    keyed: bool = False

    @property
    def columns(self) -> list[str]:
        """Columns of the table, or keys of the first records."""
        if self.table is not None:
            return list(self.table.columns)
        return list(dict.fromkeys(key for record in self.records[:FIRST_RECORDS] for key in record))

    def has(self, marks: Iterable[str]) -> bool:
        """Return whether each of the names and patterns matches a column."""
        columns = self.columns
        return all(any(mark == column or fnmatchcase(column, mark) for column in columns) for mark in marks)


def open_files(paths: Sequence[Path]) -> list[ToolFile]:
    """Open files of tables or JSON, and the members of ZIP archives.

    Raises:
        LDLError: A file is absent, cannot be read, is of another kind, or holds no rows.
    """
    return [file for path in paths for file in (_members(path) if kind_of(path) == ".zip" else [_open(path)])]


def _members(path: Path) -> list[ToolFile]:
    """Open the members of a ZIP archive that hold tables or JSON."""
    with explaining(f"{check_file(path)} cannot be read as a ZIP archive"), zipfile.ZipFile(path) as archive:
        wanted = [
            member
            for member in archive.infolist()
            if kind_of(Path(member.filename)) in {*MARKS, *RECORDS} and not _is_hidden(member.filename)
        ]
        if not wanted:
            raise LDLError(f"{path} holds no .csv, .tsv, .json or .jsonl file; give the archive that the tool wrote")
        if large := [member.filename for member in wanted if member.file_size > LARGEST_MEMBER]:
            raise LDLError(f"{path}: {large[0]} has more than 2 GiB; unpack it, and give the file")
        return [_unpacked(path, archive, member) for member in wanted]


def _is_hidden(member: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in Path(member).parts)


def _unpacked(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> ToolFile:
    """Open a member of a ZIP archive, under its own name."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / Path(member.filename).name
        file.write_bytes(archive.read(member))
        name = f"{path}:{member.filename}"
        try:
            return _open(file, name)
        except LDLError as error:
            raise LDLError(str(error).replace(str(file), name)) from None


def _open(path: Path, name: str = "") -> ToolFile:
    """Open a table or a file of JSON, with its name in messages."""
    name = name or str(path)
    stem = Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem
    if kind_of(path) in RECORDS:
        return _from_json(read_text(check_file(path)), name, stem, by_line=kind_of(path) != ".json")
    if (table := open_named(path)) is None:
        raise LDLError(
            f"{path}: unknown kind of file; give a .csv, .tsv, .json, .jsonl or Parquet file, or a .zip of them"
        )
    return ToolFile(name, stem, table.texts(table.header))


def _from_json(text: str, name: str, stem: str, by_line: bool) -> ToolFile:
    """Return the records of JSON, of one object a line, or of an object that holds them by their keys."""
    content = _parse_lines(text, name) if by_line else _parse(text, name)
    if isinstance(content, dict) and content and all(isinstance(each, dict) for each in content.values()):
        return ToolFile(name, stem, records=[{**each, "key": key} for key, each in content.items()], keyed=True)
    records = [content] if isinstance(content, dict) else content
    if not (isinstance(records, list) and records and all(isinstance(each, dict) for each in records)):
        raise LDLError(f"{name} holds no list of objects in JSON; give the export of an annotation tool")
    return ToolFile(name, stem, records=records)


def _parse(text: str, name: str) -> Any:
    """Parse JSON, also with commas before closing brackets, or with one object a line. Raises LDLError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = error
    with suppress(ValueError, RecursionError):
        return json.loads(TRAILING_COMMA.sub(lambda match: match[1] or "", text))
    with suppress(LDLError):
        return _parse_lines(text, name)
    raise LDLError(f"{name} is no JSON: {reason}; correct it, or export it again")


def _parse_lines(text: str, name: str) -> list[Any]:
    """Parse JSON with one object a line. Raises LDLError."""
    objects = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                objects.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise LDLError(f"{name}: line {number} is no JSON: {error}; correct it, or export it again") from None
    return objects
