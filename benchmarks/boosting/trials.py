"""Trials of several methods on pictures, measured once, and their table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.common.tables import write_block
from ldl.cells.store import Row, Store
from ldl.comparison.figures import spread
from ldl.data.trials.trials import Trials
from ldl.reports.files import markdown


def add_options(parser: argparse.ArgumentParser, methods: Sequence[str], left_out: Sequence[str] = ()) -> None:
    """Options that both scripts have; ``left_out`` are methods that run only where they are named."""
    default = [method for method in methods if method not in left_out]
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=methods, default=default)
    parser.add_argument("--draw_seed", type=int, default=0)
    parser.add_argument("--out", type=Path)


def run_trials(
    data: Trials,
    options: argparse.Namespace,
    out: Path,
    measure: Callable[[int, str], Row],
    shown: Callable[[Row], Row],
    settings: Row,
) -> dict[str, list[Row]]:
    """What was measured of every method, a row a trial; what ``out`` has is read.

    Args:
        data: Set up; the fold of the trial is selected.
        options: As of :func:`add_options`.
        out: Folder.
        measure: What is measured of the trial with a number, of a method.
        shown: What of it is printed.
        settings: What else a cell depends on.
    """
    store = Store(out / "cells")
    results: dict[str, list[Row]] = {method: [] for method in options.methods}
    for number in range(options.trials):
        data.select_fold(number)
        for method in options.methods:
            key: Row = {"trial": number, "method": method, "draw_seed": options.draw_seed, **settings}
            known = store.find(key) is not None
            results[method].append(row := store.cell(key, partial(measure, number, method)))
            if not known:
                print(f"trial {number} {method}: {shown(row)}", flush=True)
    return results


def tabulate(
    results: dict[str, list[Row]], measures: dict[str, tuple[str, int]], out: Path, page: Path | None, block: str
) -> None:
    """Print the table, write it into ``out`` and, where there is one, a page.

    Args:
        results: Rows by method.
        measures: Title and digits of each measure that a row may have.
        out: Folder.
        page: A Markdown page, or None.
        block: Its block.
    """
    rows = [
        [
            method,
            *(spread((row[name] for row in trials if name in row), digits) for name, (_, digits) in measures.items()),
        ]
        for method, trials in results.items()
    ]
    table = markdown(["method", *(title for title, _ in measures.values())], rows)
    (out / "table.md").write_text(table + "\n")
    print(table)
    if page:
        count = max(len(trials) for trials in results.values())
        write_block(page, block, f"Mean ± standard deviation over {count} trials.\n\n{table}")
