"""Classes in a table, as wide as the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ldl.start.help import page_width
from ldl.start.schema import ClassEntry

SHORT = ("learns", "takes")
"""Traits that are columns; the others are lines below."""


def listing(entries: Sequence[ClassEntry]) -> str:
    """A line for each class, with its traits: short ones in columns, long ones below."""
    columns = [name for name in SHORT if any(name in entry.traits for entry in entries)]
    rows = [[entry.name, *(entry.traits.get(name, "") for name in columns)] for entry in entries]
    widths = [max(map(len, column)) for column in zip(["name", *columns], *rows)]
    lines = [_cells(["name", *columns], widths) + "what"]
    for entry, row in zip(entries, rows):
        left = _cells(row, widths)
        own = "" if entry.path.startswith("ldl.") else f" ({entry.path.rpartition('.')[0]})"
        lines += textwrap.wrap(
            entry.summary + own, page_width(), initial_indent=left, subsequent_indent=" " * len(left)
        )
        for name, value in entry.traits.items():
            if name not in SHORT and value:
                lines += _below(f"{name}: {value}", len(left))
    return "\n".join(lines)


def _cells(row: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{cell:{width}}  " for cell, width in zip(row, widths))


def _below(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, page_width(), initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))
