"""What ``ldl heads`` and ``ldl data`` do: a table of classes, or all about one."""

from __future__ import annotations

from ldl.cli.command import VerbParser, known_schema
from ldl.errors import LDLError
from ldl.start.help import chosen_page
from ldl.start.tables import listing


def show(args: list[str], verb: str, doc: str | None, base: str, what: str) -> None:
    """Print the classes of one of ``ldl.start.schema.BASES``, or all about the one that is named. Raises LDLError."""
    parser = VerbParser(verb, doc)
    parser.add_argument("name", nargs="?", help=f"{what}, for all its options")
    name = parser.parse_args(args).name
    schema = known_schema()
    if name is None:
        print(listing(schema.of(base)))
    elif (page := chosen_page(base, name, schema)) is not None:
        print(page)
    else:
        paths = [entry.path for entry in schema.of(base) if entry.name == name.rpartition(".")[2]]
        fix = f"give {' or '.join(paths)}" if paths else f"ldl {verb} lists all"
        raise LDLError(f"{name!r} is not the name of {what}, or of several; {fix}")
