"""The parser of subcommands, and the check of files that they write."""

from __future__ import annotations

import argparse
import os
from argparse import Namespace
from pathlib import Path
from typing import Any, NoReturn

from ldl.errors import LDLError


class CommandParser(argparse.ArgumentParser):
    """A parser that raises LDLError, does not accept abbreviated options, and replaces ``~`` in paths.

    Args:
        name: Name of the subcommand.
        doc: Description of the subcommand.
    """

    def __init__(self, name: str, doc: str | None) -> None:
        super().__init__(prog=f"ldl {name}", description=doc, allow_abbrev=False)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Namespace:  # type: ignore[override]
        return at_home(super().parse_args(args, namespace))

    def error(self, message: str) -> NoReturn:
        raise LDLError(f"{message}; see {self.prog} --help")


def at_home(given: Namespace) -> Namespace:
    """Replace ``~`` by the user's home in options that are paths."""
    paths = {name: Path(os.path.expanduser(value)) for name, value in vars(given).items() if isinstance(value, Path)}
    return Namespace(**{**vars(given), **paths})


def check_replaceable(path: Path, option: str, begins: str) -> bool:
    """Return whether a file exists that the command has written before.

    Args:
        path: The file that ``option`` names.
        option: The option, with its dashes.
        begins: The beginning of the command's files, without white space.

    Raises:
        LDLError: The file exists and begins differently.
    """
    if not os.path.lexists(path):
        return False
    try:
        with path.open(encoding="utf-8") as file:
            ours = "".join(file.read(4 * len(begins)).split()).startswith(begins)
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise LDLError(
            f"{option} {path} exists, and this command did not write it; give another file, or move that file"
        )
    return True
