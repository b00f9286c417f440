"""The heads that can be named, those of plugins too: how each learns, what it takes, and its options."""

from __future__ import annotations

from ldl.cli.command import VerbParser, known_schema
from ldl.start.help import chosen_page
from ldl.start.tables import listing


def run(args: list[str]) -> None:
    """Print a table of the heads, or all about one. Raises LDLError."""
    parser = VerbParser("heads", __doc__)
    parser.add_argument("name", nargs="?", help="a head, for all its options")
    name = parser.parse_args(args).name
    schema = known_schema()
    print(listing(schema.of("model.head")) if name is None else chosen_page("model.head", name, schema))
