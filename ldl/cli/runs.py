"""The runs in a folder: what each was, and what it measured; filtered, sorted, two of them compared."""

from __future__ import annotations

import sys
from pathlib import Path

from ldl.cli.command import VerbParser
from ldl.runs.listing import chosen, listing, ordered, unheard_of, write_runs
from ldl.runs.pair import comparison, find_pair
from ldl.runs.reading import find_runs


def run(args: list[str]) -> None:
    """List runs, or compare two. Raises LDLError."""
    parser = VerbParser("runs", __doc__)
    parser.add_argument("folder", nargs="?", default="runs", type=Path, help="where runs are looked for (runs)")
    parser.add_argument("--head", help="runs of this head only")
    parser.add_argument("--data", help="runs on these data only, as the list calls them")
    parser.add_argument("--stage", help="runs of this stage only, such as crossval")
    parser.add_argument(
        "--where", action="append", default=[], metavar="OPTION=VALUE", help="runs with this option only; repeatable"
    )
    parser.add_argument("--sort", default="when", help="when (newest first), data, head, or a measure (best first)")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two runs: folders, or parts of their names")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all measures of the runs listed")
    given = parser.parse_args(args)
    runs, damaged = find_runs(given.folder)
    for line in damaged:
        print(f"left out: {line}", file=sys.stderr)
    if given.compare:
        print("\n".join(comparison(*find_pair(given.compare, runs))))
        return
    filters = given.head, given.data, given.stage, given.where
    shown = ordered(chosen(runs, *filters), given.sort)
    print("\n".join(listing(shown, given.sort)) if shown else f"no such run in {given.folder}, of {len(runs)}")
    for line in unheard_of(runs, *filters) if runs else ():
        print(line, file=sys.stderr)
    if given.csv:
        write_runs(given.csv, shown)
        print(f"{len(shown)} runs: {given.csv}")
