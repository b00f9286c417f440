"""The data sets that can be named, those of plugins too: files, source, protocols, and options."""

from __future__ import annotations

from ldl.cli.classes import show


def run(args: list[str]) -> None:
    """Print a table of the data modules, or all about one. Raises LDLError."""
    show(args, "data", __doc__, "data", "a data module")
