"""The subcommand ``ldl votes``: exports of annotation tools as votes, and predictions as suggestions to annotators."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from ldl.annotations.exports import TOOLS, read_export
from ldl.annotations.exports.suggestions import SUGGESTIONS, suggestions_of
from ldl.checkpoint import replacing
from ldl.command.options import CommandParser, check_replaceable
from ldl.errors import LDLError
from ldl.reports.files import write_csv

BEGINS = "item,"
"""Beginning of the files of votes that the command writes."""


def votes(args: list[str]) -> None:
    """Convert what annotation tools write to a CSV file of votes.

    The file has one row per vote, with item, rater, label and the columns of the item; if the tool has counts, one row
    per item. The command reports what was taken and what was left out. With --suggest, it writes the predictions of a
    run as suggestions to annotators. With --next, it ranks the items of a run's data by the expected gain of their next
    vote.
    """
    parser = CommandParser("votes", votes.__doc__)
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="exports of one tool: JSON, JSONL, CSV, TSV, or a ZIP of them; with --suggest a predictions.csv, and the "
        "table of the items; with --next a run directory or a checkpoint, and the file of the votes so far",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file to write; without it, the lines are printed alone"
    )
    parser.add_argument("--tool", choices=[*TOOLS, "none"], help="tool that wrote the files; found by default")
    parser.add_argument("--item_column", metavar="NAME", help="column, key or path of the items; by default the tool's")
    parser.add_argument(
        "--rater_column", metavar="NAME", help="column, key or path of the raters; by default the tool's"
    )
    parser.add_argument(
        "--vote_column", metavar="NAME", help="question whose answers are the votes, if there are several"
    )
    parser.add_argument(
        "--workflow_version",
        default="latest",
        metavar="VERSION",
        help="version of a workflow of Zooniverse; latest, or all",
    )
    parser.add_argument(
        "--keep",
        nargs="+",
        metavar="REASON",
        help="count votes that are left out, such as gold or rejected",
    )
    parser.add_argument(
        "--suggest",
        choices=SUGGESTIONS,
        help="write the predictions of a run as suggestions that a tool imports; --vote_column is its question "
        "(label), and --item_column the column that annotators see (text or image)",
    )
    parser.add_argument(
        "--next", type=int, metavar="N", help="rank the N items of a run's data whose next vote has the largest gain"
    )
    arguments = parser.parse_args(args)
    if arguments.next is not None:
        _rank_next(arguments, parser)
    elif arguments.suggest:
        _write_suggestions(arguments, parser)
    else:
        _write_votes(arguments)


def _write_votes(arguments: Namespace) -> None:
    """Write and report the votes in exports. Raises LDLError."""
    export = read_export(
        arguments.files,
        arguments.tool,
        item_column=arguments.item_column,
        rater_column=arguments.rater_column,
        vote_column=arguments.vote_column,
        workflow_version=arguments.workflow_version,
        keep=arguments.keep or (),
    )
    for note in export.notes:
        print(note)
    if arguments.out is not None:
        check_replaceable(arguments.out, "--out", BEGINS)
        table = export.votes.astype(object).where(export.votes.notna(), "")
        write_csv(arguments.out, list(table), table.to_numpy().tolist())
        print(f"{len(table)} rows: {arguments.out}")


def _write_suggestions(arguments: Namespace, parser: CommandParser) -> None:
    """Write predictions as suggestions. Raises LDLError, also for other options of exports."""
    if unused := _other_options(arguments, parser, "suggest", "out", "item_column", "vote_column"):
        raise LDLError(f"--suggest reads no export and has no use for --{unused[0]}; leave it out")
    if len(arguments.files) > 2 or arguments.out is None:
        raise LDLError("--suggest takes a predictions.csv, the table of the items if need be, and --out FILE.json")
    predictions, *items = arguments.files
    tasks = suggestions_of(
        predictions, items[0] if items else None, arguments.suggest, arguments.vote_column, arguments.item_column
    )
    check_replaceable(arguments.out, "--out", '[{"data":' if arguments.suggest == "label_studio" else '[{"id":')
    with replacing(arguments.out) as file:
        file.write(json.dumps(tasks, ensure_ascii=False, indent=1).encode())
    print(f"{len(tasks)} suggestions: {arguments.out}")


def _rank_next(arguments: Namespace, parser: CommandParser) -> None:
    """Rank the items of a run's data. Raises LDLError, also for options of exports."""
    if unused := _other_options(arguments, parser, "next", "out"):
        raise LDLError(f"--next reads votes with the options of the run; leave --{unused[0]} out")
    from ldl.command.next_votes import next_votes  # takes seconds, and exports need no model

    next_votes(arguments.files, arguments.next, arguments.out)


def _other_options(arguments: Namespace, parser: CommandParser, *names: str) -> list[str]:
    """Return the options that are given besides ``names`` and the files."""
    others = [name for name in vars(arguments) if name not in ("files", *names)]
    return [name for name in others if getattr(arguments, name) != parser.get_default(name)]
