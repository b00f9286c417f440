"""Columns of the tabular benchmark (a set with a protocol), and the file of its results."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ldl.data import TabularLDL
from ldl.data.tables.module import GroupProtocol
from ldl.errors import LDLError
from ldl.jobs.store import Key, Result
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.reports.files import write_csv

PROTOCOLS: tuple[GroupProtocol, ...] = ("persons", "shuffled")
KEY = {"set": str, "protocol": str, "method": str, "seed": int, "fold": int, "spec": int}
"""Fields that identify a result, and their types."""


@dataclass(frozen=True)
class Column:
    """A set, its file, the protocol of its folds, and its title: the name, and the protocol if there are two."""

    name: str
    path: str
    protocol: GroupProtocol
    title: str


def columns_of(files: dict[str, str], sets: Iterable[str], protocols: Iterable[str]) -> list[Column]:
    """Return the columns of some sets. A set without groups has only shuffled rows. Raises LDLError if none is left."""
    columns = []
    for name in sets:
        data = TabularLDL(path=files[name])
        data.setup()
        if data.groups is None:
            columns += [Column(name, files[name], "shuffled", name)] if "shuffled" in protocols else []
        else:
            columns += [Column(name, files[name], p, f"{name}, {p}") for p in PROTOCOLS if p in protocols]
    if not columns:
        raise LDLError(f"the subjects of {', '.join(sets)} are unknown; pass --protocol shuffled")
    return columns


def titled(results: Iterable[Result], columns: Iterable[Column]) -> list[Result]:
    """Return the results of some columns, each with the title of its column as its set."""
    titles = {(column.name, column.protocol): column.title for column in columns}
    keyed = [(row, (row["set"], row["protocol"])) for row in results]
    return [{**row, "set": titles[key]} for row, key in keyed if key in titles]


def write_results(path: Path, results: Iterable[Result]) -> None:
    """Write one line per result, sorted by its key; of a failed one the error."""
    rows = [
        [
            *(row.get(name, "") for name in KEY), json.dumps(row.get("setting", {})), row.get("seconds", ""),
            *(row.get("measures", {}).get(name, "") for name in DISTRIBUTION_METRICS), row.get("error", ""),
        ]
        for row in results
    ]  # fmt: skip
    header = [*KEY, "setting", "seconds", *DISTRIBUTION_METRICS, "error"]
    write_csv(path, header, sorted(rows, key=lambda row: row[: len(KEY) - 1]))


def read_results(path: Path) -> list[tuple[Key, Result]]:
    """Read the key and the content of each result of a file, without failed ones; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return [
            (
                {name: kind(row[name]) for name, kind in KEY.items()},
                {
                    "setting": json.loads(row["setting"]),
                    "seconds": float(row["seconds"]),
                    "measures": {name: float(row[name]) for name in DISTRIBUTION_METRICS},
                },
            )
            for row in csv.DictReader(stream)
            if not row["error"]
        ]
