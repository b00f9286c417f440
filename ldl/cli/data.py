"""The data sets that can be named, those of plugins too: files, source, protocols, and options."""

from __future__ import annotations

from ldl.cli.command import VerbParser, known_schema
from ldl.start.help import chosen_page
from ldl.start.tables import listing


def run(args: list[str]) -> None:
    """Print a table of the data modules, or all about one. Raises LDLError."""
    parser = VerbParser("data", __doc__)
    parser.add_argument("name", nargs="?", help="a data module, for all its options")
    name = parser.parse_args(args).name
    schema = known_schema()
    print(listing(schema.of("data")) if name is None else chosen_page("data", name, schema))
