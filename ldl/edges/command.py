"""The subcommand ``ldl edges-eval``."""

from __future__ import annotations

from ldl.command.options import CommandParser
from ldl.edges.evaluation import add_options, evaluate


def edges_eval(args: list[str]) -> None:
    """Evaluate a folder of edge maps by the benchmark of BSDS500: ODS, OIS, AP."""
    parser = CommandParser("edges-eval", edges_eval.__doc__)
    add_options(parser)
    evaluate(parser.parse_args(args))
