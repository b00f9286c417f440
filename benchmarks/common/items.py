"""Tables and figures of a paper: what measures them, and what was measured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.claims import Claim, from_json, judge, to_json
from ldl.cells.store import Row, Store
from ldl.reports.files import write_json

HUMAN_GENE = (
    "ldl/Human_Gene.mat (30,542 rows, 36 features, 68 labels) is not at hand. It is expected below LDL_DATA with "
    "`features` (N, F) and `labels` (N, C); the command fetches it where it is missing. Files of this layout are made "
    "up in tests/benchmarks/conftest.py"
)
"""Why what two papers show of it is absent."""
NOTHING, ABSENT, MISSING = "nothing to measure", "cannot be run here", "not measured"


class Work:
    """Where an item is measured.

    Attributes:
        folder: Its own; charts and runs lie here.
        quick: In a small form, which proves the command and no claim.
    """

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self._store = Store(folder / "cells")
        self._shared: dict[str, Work] = {}

    def cell(self, key: Row, measure: Callable[[], Row]) -> Row:
        """What was measured under ``key``, or is measured now and kept, so that what was stopped goes on."""
        return self._store.cell(key, measure)

    def shared(self, name: str) -> Work:
        """Cells that several items of the paper read."""
        if name not in self._shared:
            # Making one reads all its cells.
            self._shared[name] = Work(self.folder.parent / name, self.quick)
        return self._shared[name]


@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or figure.

    Attributes:
        name: ``Table 15``.
        shows: What it shows.
        protocol: Folds, seeds, what deviations are over, who chose settings on what; no figure that was measured.
        measure: Makes its claims; None where there is nothing to measure, or where it cannot be.
        absent: Why it cannot be run here: what is missing, and the layout in which it is expected.
        command: What measures it where it is not ``papers.py``: the command that somebody with the data runs.
        why: Why it differs, as far as is known; no figure that was measured.
    """

    name: str
    shows: str
    protocol: str = ""
    measure: Callable[[Work], Iterable[Claim]] | None = None
    absent: str = ""
    command: str = ""
    why: str = ""


@dataclass(frozen=True)
class Paper:
    """The items of a paper, in its order.

    Attributes:
        name: ``structrf``, which is also its folder in ``benchmarks/`` and its page.
        title: In words.
        items: All tables and figures, each once.
    """

    name: str
    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Measured:
    """What an item came to, and the seconds of the processor that it took, without cells that others had measured."""

    claims: tuple[Claim, ...]
    seconds: float


def measure(item: Item, work: Work) -> Measured:
    """Measure an item; what its folder has is not measured again, but for its seconds."""
    assert item.measure is not None
    spent = work.folder / "seconds.json"
    before = json.loads(spent.read_text(encoding="utf-8"))["seconds"] if spent.is_file() else 0.0
    start = time.process_time()
    try:
        claims = tuple(from_json(json.loads(json.dumps(to_json(claim)))) for claim in item.measure(work))
    finally:
        seconds = before + time.process_time() - start
        write_json(spent, {"seconds": seconds})
    return Measured(claims, seconds)


def verdict(item: Item, measured: Measured | None) -> str:
    """In a word or a few."""
    if item.measure is None:
        return ABSENT if item.absent else NOTHING
    return MISSING if measured is None else judge(measured.claims)


def write_figures(path: Path, figures: dict[str, Measured]) -> None:
    """What pages are written from."""
    content: dict[str, Any] = {
        name: {"seconds": round(figure.seconds, 1), "claims": [to_json(claim) for claim in figure.claims]}
        for name, figure in figures.items()
    }
    write_json(path, content)


def read_figures(path: Path) -> dict[str, Measured]:
    """What :func:`write_figures` wrote; nothing where there is no file."""
    if not path.is_file():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Measured(tuple(from_json(claim) for claim in figure["claims"]), figure["seconds"])
        for name, figure in content.items()
    }
