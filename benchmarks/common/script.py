"""What scripts share: the command line, tables, and times that compare."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once
from ldl.errors import LDLError

# isort: split
from rich.console import Console
from rich.table import Table

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def make_parser(doc: str | None, threads: int | None = None, block: str | None = None) -> argparse.ArgumentParser:
    """Return a parser whose help shows the script's docstring.

    Args:
        doc: The docstring.
        threads: Default of an option ``--threads``; None for no such option.
        block: Block of a Markdown page that an option ``--page`` writes; None for no such option.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if threads is not None:
        parser.add_argument("--threads", type=int, default=threads, help="(default: %(default)s)")
    if block is not None:
        parser.add_argument("--page", type=Path, help=f"Markdown page in which to replace the table of block {block}")
    return parser


def launch(main: Callable[[], None]) -> None:
    """Run a script. An LDLError is printed in one line, with exit code 2."""
    try:
        main()
    except LDLError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table. The first column is aligned to the left, the others to the right."""
    table = Table(title=title)
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def write_block(page: Path, name: str, text: str) -> None:
    """Replace the text of a page between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``. Raises LDLError."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    whole = page.read_text(encoding="utf-8") if page.is_file() else ""
    found = re.findall(f"{re.escape(begin)}\n.*?{re.escape(end)}", whole, re.DOTALL)
    if len(found) != 1:
        raise LDLError(f"{page} must have one line {begin} and one line {end} below it")
    page.write_text(whole.replace(found[0], f"{begin}\n{text.strip()}\n{end}"), encoding="utf-8")


class Seconds(NamedTuple):
    """Seconds of the clock and of the processor. The latter depend little on other work on the machine."""

    clock: float
    processor: float


def seconds(work: Callable[[], object], per: float = 1) -> Seconds:
    """Return the seconds of one call divided by ``per``, such as the number of queries that it answers."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return Seconds((time.perf_counter() - clock) / per, (time.process_time() - processor) / per)


def timed(work: Callable[[], object]) -> Seconds:
    """Return the seconds of a call, or the seconds of a part of it that the call itself returns."""
    results: list[object] = []
    whole = seconds(lambda: results.append(work()))
    return results[0] if isinstance(results[0], Seconds) else whole


def take_turns(names: Iterable[K], rounds: int, measure: Callable[[K, int], T]) -> dict[K, list[T]]:
    """Call ``measure(name, round)`` for every name in every round, in odd rounds backwards."""
    measured: dict[K, list[T]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in list(measured) if turn % 2 == 0 else reversed(measured):
            measured[name].append(measure(name, turn))
    return measured
