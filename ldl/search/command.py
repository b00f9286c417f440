"""The subcommand ``ldl runs``: a list of runs with their results."""

from __future__ import annotations

import sys
from pathlib import Path

from ldl.command.options import CommandParser, check_replaceable
from ldl.errors import explaining
from ldl.search.runs import as_table, comparison, find_run, find_runs, listing, select


def runs(args: list[str]) -> None:
    """List the runs in a folder with their results, or compare two.

    The list can be filtered and sorted.
    """
    parser = CommandParser("runs", runs.__doc__)
    parser.add_argument("folder", nargs="?", default="runs", type=Path, help="folder of the runs (%(default)s)")
    parser.add_argument("--head", help="runs of this head only")
    parser.add_argument("--data", help="runs on these data only, as the list names them")
    parser.add_argument("--stage", help="runs of this stage only, such as crossval")
    parser.add_argument(
        "--where", action="append", default=[], metavar="OPTION=VALUE", help="runs with this option only; repeatable"
    )
    parser.add_argument("--sort", default="when", help="when (newest first), data, head, or a metric (best first)")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two runs: folders, or parts of their names")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all metrics of the listed runs")
    options = parser.parse_args(args)
    every, damaged = find_runs(options.folder)
    for line in damaged:
        print(f"left out: {line}", file=sys.stderr)
    if options.compare:
        print("\n".join(comparison(*(find_run(name, every) for name in options.compare))))
        return
    wanted, unknown = select(every, options.head, options.data, options.stage, options.where)
    shown = as_table(wanted, options.sort)
    if wanted:
        print("\n".join(listing(shown, options.sort)))
    else:
        print(f"none of the {len(every)} runs in {options.folder} matches")
    for line in unknown:
        print(line, file=sys.stderr)
    if options.csv:
        check_replaceable(options.csv, "--csv", "folder,when,data,protocol,")
        with explaining(f"--csv {options.csv} cannot be written", "give another file", (OSError,)):
            shown.to_csv(options.csv, index=False, errors="backslashreplace")
        print(f"{len(shown)} runs: {options.csv}")
