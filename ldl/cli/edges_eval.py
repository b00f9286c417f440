"""The benchmark of BSDS500 on a folder of edge maps: ODS, OIS, AP."""

from __future__ import annotations

from ldl.cli.command import VerbParser
from ldl.edges.evaluation import add_options, evaluate


def run(args: list[str]) -> None:
    """Evaluate the maps of a folder. Raises LDLError."""
    parser = VerbParser("edges-eval", __doc__)
    add_options(parser)
    evaluate(parser.parse_args(args))
