"""What was measured, on disk: a comparison that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Store:
    """Cells of a comparison or a benchmark, a JSON line each, written as soon as they are measured.

    A line that was cut off while it was written, and a cell that failed (it has an ``error``), are dropped when the
    file is opened, and so are measured again.

    Args:
        path: The file; it is made, with its folder, by the first cell.

    Attributes:
        rows: All cells: what names them and what was measured, in one dict each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            rows = [json.loads(line) for line in text.split("\n")[:-1] if line]
            self.rows = [row for row in rows if "error" not in row]
            if len(self.rows) < len(rows) or not text.endswith("\n"):
                temporary = path.with_suffix(".tmp")
                temporary.write_text("".join(json.dumps(row) + "\n" for row in self.rows), encoding="utf-8")
                os.replace(temporary, path)

    def find(self, key: Row) -> Row | None:
        """The cell that has all items of ``key``."""
        return next((row for row in self.rows if key.items() <= row.items()), None)

    def cell(self, key: Row, measure: Callable[[], Row]) -> Row:
        """The cell of ``key``; where it is missing it is measured and written."""
        found = self.find(key)
        if found is None:
            line = json.dumps(key | measure())
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")
            # As it will be read: tuples are lists.
            self.rows.append(found := json.loads(line))
        return found
