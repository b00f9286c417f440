"""The heads that can be named, those of plugins too: how each learns, what it takes, and its options."""

from __future__ import annotations

from ldl.cli.classes import show


def run(args: list[str]) -> None:
    """Print a table of the heads, or all about one. Raises LDLError."""
    show(args, "heads", __doc__, "model.head", "a head")
