"""Measures that are taken once: a file a cell, so that what was stopped goes on, and many processes may measure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from ldl.cells.coordinator import Cell, Workers
from ldl.checkpoint import replacing
from ldl.errors import LDLError

Row = dict[str, Any]

NAME = "results.json"


class Store:
    """Cells of a comparison or a benchmark: what names each and what was measured, in ``KEY/results.json``.

    A file is written whole as soon as its cell is measured. One that failed (it has an ``error``) is measured again by
    the next store; until then it is among the rows. Processes may share a folder.

    Args:
        folder: Where the cells lie, or will.

    Attributes:
        rows: All cells, in the order of their measuring.

    Raises:
        LDLError: a file of the folder is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[Row] = []
        self._known: dict[str, Row] = {}
        found = [(path.stat().st_mtime_ns, path) for path in folder.glob(f"*/{NAME}")]
        for _, path in sorted(found):
            row = _read_cell(path)
            if "error" not in row:
                self._add(path.parent.name, row)

    def find(self, key: Row) -> Row | None:
        """The cell of ``key``; None where it is not measured."""
        return self._known.get(name_of(key))

    def cell(self, key: Row, measure: Callable[[], Row]) -> Row:
        """The cell of ``key``; where it is missing it is measured and written."""
        return self.find(key) or self.put(key, measure())

    def fill(
        self,
        wanted: Iterable[tuple[Row, Callable[[], Row]]],
        workers: Workers,
        each: Callable[[Row], None] = lambda row: None,
    ) -> None:
        """Have cells that are missing measured by other processes, each of which writes its own.

        Args:
            wanted: Of each cell its key and what measures it, which is pickled.
            workers: The processes.
            each: Is called with every cell that is done.

        Raises:
            LDLError: a measure was refused, or processes are lost again and again.
        """
        missing = {words_of(key): (key, measure) for key, measure in wanted if self.find(key) is None}
        cells = [Cell(name, partial(_measure, self.folder.absolute(), *cell)) for name, cell in missing.items()]

        def done(name: str, row: Row) -> None:
            self._add(name_of(missing[name][0]), row)
            each(row)

        for name, reason in workers.do(cells, done).items():
            self.put(missing[name][0], {"error": reason})

    def put(self, key: Row, measured: Row) -> Row:
        """Write what was measured of a cell, and return it as it will be read: tuples are lists."""
        row = write_cell(self.folder, key, measured)
        self._add(name_of(key), row)
        return row

    def _add(self, name: str, row: Row) -> None:
        self._known[name] = row
        self.rows.append(row)


def _read_cell(path: Path) -> Row:
    try:
        row: Row = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(row, dict):
            raise ValueError(f"{type(row).__name__} instead of a mapping")
    except (OSError, ValueError, RecursionError) as error:
        raise LDLError(f"{path} cannot be read: {error}; remove it, and the cell is measured again") from None
    return row


def _measure(folder: Path, key: Row, measure: Callable[[], Row]) -> Row:
    return write_cell(folder, key, measure())


def write_cell(folder: Path, key: Row, measured: Row) -> Row:
    """Write a cell of the store in ``folder``, all or nothing, and return it as it will be read."""
    text = json.dumps(key | measured)
    with replacing(folder / name_of(key) / NAME) as file:
        file.write(f"{text}\n".encode())
    row: Row = json.loads(text)
    return row


def name_of(key: Row) -> str:
    """The folder of a cell."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]


def words_of(key: Row) -> str:
    """A cell in messages."""
    return ", ".join(f"{name} {value}" for name, value in key.items())
