"""Reading bags of instances from .csv files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ldl.data.csv_table import read_csv
from ldl.data.tables.distributions import read_file
from ldl.errors import LDLError, some

NAMES = {"label", "bag"}
LABELS = {-1.0: 0, 0.0: 0, 1.0: 1}


@dataclass(frozen=True)
class BagTable:
    """Instances, those of a bag side by side: bags in the order in which the file first names them.

    ``features`` (N, F), finite; ``bag`` (N,) rising from 0; ``label`` (B,) 0 or 1, one a bag; ``names`` of the bags;
    ``columns``, the names of the features, where a header gives them.
    """

    features: np.ndarray
    bag: np.ndarray
    label: np.ndarray
    names: list[str]
    columns: list[str] | None = None


def read_bags(path: Path) -> BagTable:
    """Read a table of instances: label, bag, features; or in any order where a header names ``label`` and ``bag``.

    Raises LDLError: a missing or unreadable file or column, a field that is no finite number, a label other than 0, 1
    or -1, a row without a bag, or a bag with labels that differ.
    """
    table = read_file(path, partial(read_csv, has_header=lambda first: bool(NAMES & set(first))))
    headed = bool(NAMES & set(table.header))
    label, bag = ("label", "bag") if headed else ("1", "2")
    if not table.rows or len(table.header) < 3:
        shown = some(table.header if headed else [*table.rows, []][0])
        raise LDLError(f"{path}: needs rows of label, bag and at least one feature; its first row is {shown}")
    bags = table.filled(bag, "no name of a bag; give every row one")
    names: dict[str, int] = {}
    owner = np.array([names.setdefault(name, len(names)) for name in bags])
    hint = "" if headed else "; a header must name the columns label and bag"
    labels = table.numbers([label], hint)[:, 0]
    if len(wrong := np.flatnonzero(~np.isin(labels, list(LABELS)))):
        table.refuse(wrong[0], table.place(label), "no label: these are 0 or -1 (negative) and 1 (positive)")
    rest = table.features(label, bag)
    features = rest.numbers(hint=hint)
    # The instances of a bag side by side.
    order = np.argsort(owner, kind="stable")
    owner, sides = owner[order], np.array([LABELS[value] for value in labels[order]])
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    if len(mixed := np.flatnonzero(sides != sides[first][owner])):
        name = list(names)[owner[mixed[0]]]
        raise LDLError(f"{path}: bag {name!r} is both negative and positive; a bag has one label")
    return BagTable(features[order], owner, sides[first], list(names), rest.header if headed else None)
