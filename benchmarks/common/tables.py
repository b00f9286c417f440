"""Tables for the console and for Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ldl.errors import LDLError


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; the first column stands left, the others right."""
    table = Table(title=title)
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def write_block(page: Path, name: str, text: str) -> None:
    """Replace what a page holds between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``. Raises LDLError."""
    if not page.is_file():
        raise LDLError(
            f"no page {page}: give a Markdown file with the lines <!-- begin {name} --> and <!-- end {name} -->"
        )
    whole = page.read_text(encoding="utf-8")
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    found = re.findall(f"{re.escape(begin)}\n.*?{re.escape(end)}", whole, re.DOTALL)
    if (len(found), whole.count(begin), whole.count(end)) != (1, 1, 1):
        raise LDLError(f"{page} needs one line {begin} and after it one line {end}, between which the table is written")
    page.write_text(whole.replace(found[0], f"{begin}\n{text.strip()}\n{end}"), encoding="utf-8")
