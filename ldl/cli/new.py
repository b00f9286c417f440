"""A head or a data module of one's own to start from: a plugin that works, its test and its configuration."""

from __future__ import annotations

from pathlib import Path

from ldl.cli.command import VerbParser, known_schema
from ldl.start.scaffold import write_new


def run(args: list[str]) -> None:
    """Write the files into the working directory, and say how to train. Raises LDLError."""
    parser = VerbParser("new", __doc__)
    parser.add_argument("kind", choices=["head", "data"])
    parser.add_argument("name", help="name of the class, such as MyHead")
    given = parser.parse_args(args)
    made = write_new(given.kind, given.name, Path.cwd(), known_schema())
    print("\n".join([*(str(path.relative_to(Path.cwd())) for path in made.values()), "train it: " + _train(made)]))


def _train(made: dict[str, Path]) -> str:
    return f"ldl -c {made['config'].relative_to(Path.cwd())}"
