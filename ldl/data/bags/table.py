"""Reading bags of instances from .csv files."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldl.errors import LDLError

LABELS = {-1.0: 0, 0.0: 0, 1.0: 1}


@dataclass(frozen=True)
class BagTable:
    """Instances, those of a bag side by side: bags in the order in which the file first names them.

    ``features`` (N, F), finite; ``bag`` (N,) rising from 0; ``label`` (B,) 0 or 1, one a bag; ``names`` of the bags.
    """

    features: np.ndarray
    bag: np.ndarray
    label: np.ndarray
    names: list[str]


def read_bags(path: Path) -> BagTable:
    """Read a table of instances: label, bag, features; or in any order where a header names ``label`` and ``bag``.

    Raises:
        LDLError: a missing or unreadable file or column, a field that is no finite number, a label other than 0, 1 or
            -1, or a bag with labels that differ.
    """
    if not path.is_file():
        raise LDLError(
            f"no data file at {path}; give --data.path, or the folder it lies in with --data.root or LDL_DATA"
        )
    if path.suffix.lower() != ".csv":
        raise LDLError(f"{path}: unknown kind of file {path.suffix!r}; bags are read from .csv")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LDLError(f"{path} cannot be read as .csv: {error}") from error
    label, bag, first = _columns(path, rows)
    others = [column for column in range(len(rows[0])) if column not in (label, bag)]
    numbers = np.array([_numbers(path, line, row, rows[0], label, others) for line, row in enumerate(rows[first:])])
    names: dict[str, int] = {}
    owner = np.array([names.setdefault(row[bag].strip(), len(names)) for row in rows[first:]])
    return _table(path, numbers, owner, list(names))


def _columns(path: Path, rows: list[list[str]]) -> tuple[int, int, int]:
    """Columns of label and bag, and the first row of numbers."""
    header = [field.strip() for field in rows[0]] if rows else []
    named = [name for name in ("label", "bag") if name in header]
    if len(named) == 1:
        raise LDLError(f"{path}: the header names {named[0]!r} but not the other of label and bag: {header[:6]}")
    first = len(named) // 2
    if len(rows) <= first or len(header) < 3:
        raise LDLError(f"{path}: needs rows of label, bag and at least one feature; its first row is {header[:6]}")
    return (header.index("label"), header.index("bag"), 1) if named else (0, 1, 0)


def _numbers(path: Path, line: int, row: list[str], head: list[str], label: int, others: list[int]) -> list[float]:
    if len(row) != len(head):
        raise LDLError(f"{path}: instance {line} has {len(row)} fields, the first row {len(head)}")
    numbers = []
    for column in [label, *others]:
        try:
            numbers.append(float(row[column]))
        except ValueError:
            raise LDLError(
                f"{path}: instance {line}, column {column} is {row[column]!r}, not a number; a header must name the "
                "columns label and bag"
            ) from None
        if not np.isfinite(numbers[-1]):
            raise LDLError(f"{path}: instance {line}, column {column} is {row[column]}; fill or drop it first")
    if numbers[0] not in LABELS:
        raise LDLError(
            f"{path}: instance {line} has label {row[label]}; labels are 0 or -1 (negative) and 1 (positive)"
        )
    return numbers


def _table(path: Path, numbers: np.ndarray, owner: np.ndarray, names: list[str]) -> BagTable:
    order = np.argsort(owner, kind="stable")
    owner, numbers = owner[order], numbers[order]
    label = np.array([LABELS[value] for value in numbers[:, 0]])
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    mixed = np.flatnonzero(label != label[first][owner])
    if len(mixed):
        raise LDLError(f"{path}: bag {names[owner[mixed[0]]]!r} is both negative and positive; a bag has one label")
    return BagTable(numbers[:, 1:], owner, label[first], names)
