"""Cells of the tabular benchmark as one file beside their page: what took hours elsewhere is not measured again."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

from ldl.cells.store import Row
from ldl.metrics import DISTRIBUTION_METRICS
from ldl.reports.files import write_csv

NAMED = {"set": str, "protocol": str, "method": str, "seed": int, "fold": int, "spec": int}
"""What names a cell."""


def write_cells(path: Path, cells: Iterable[Row]) -> None:
    """One line a cell, all or nothing, in order of what names them; of one that failed the error."""
    rows = [
        [
            *(cell.get(name, "") for name in NAMED), json.dumps(cell.get("setting", {})), cell.get("seconds", ""),
            *(cell.get("measures", {}).get(name, "") for name in DISTRIBUTION_METRICS), cell.get("error", ""),
        ]
        for cell in cells
    ]  # fmt: skip
    header = [*NAMED, "setting", "seconds", *DISTRIBUTION_METRICS, "error"]
    write_csv(path, header, sorted(rows, key=lambda row: row[: len(NAMED) - 1]))


def read_cells(path: Path) -> list[tuple[Row, Row]]:
    """What names each cell of a file, and what was measured; none where there is no file, failures left out."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return [
            (
                {name: kind(row[name]) for name, kind in NAMED.items()},
                {
                    "setting": json.loads(row["setting"]),
                    "seconds": float(row["seconds"]),
                    "measures": {name: float(row[name]) for name in DISTRIBUTION_METRICS},
                },
            )
            for row in csv.DictReader(stream)
            if not row["error"]
        ]
