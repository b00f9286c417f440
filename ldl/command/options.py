"""The parser of subcommands, and the check of files that they write."""

from __future__ import annotations

import argparse
import os
import re
from argparse import Namespace
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin

from docstring_parser import parse
from typing_extensions import override

from ldl.errors import LDLError
from ldl.options import Option, options_of


class CommandParser(argparse.ArgumentParser):
    """A parser that raises LDLError, does not accept abbreviated options, and replaces ``~`` in paths.

    Args:
        name: Name of the subcommand.
        doc: Description of the subcommand.
    """

    def __init__(self, name: str, doc: str | None) -> None:
        super().__init__(prog=f"ldl {name}", description=doc, allow_abbrev=False)

    @override
    def parse_args(self, args: Any = None, namespace: Any = None) -> Namespace:  # type: ignore[override]
        return at_home(super().parse_args(args, namespace))

    def error(self, message: str) -> NoReturn:
        """Raise LDLError instead of leaving the process, with where to find help."""
        raise LDLError(f"{message}; see {self.prog} --help")


def option_texts(cls: type) -> dict[str, str]:
    """Return the descriptions of the options of a class, from its docstring and those of its bases."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for doc in (base.__doc__, vars(base).get("__init__", base).__doc__):
            texts |= {param.arg_name: param.description or "" for param in parse(doc or "").params}
    return texts


def help_text(doc: str) -> str:
    """Return a docstring as a terminal shows it: names in single backticks, without the roles of Sphinx."""
    return re.sub(r"(?::\w+:)?(`+)([^`]+)\1", r"`\2`", doc)


def add_options(parser: Any, classes: Iterable[type], names: Collection[str], others: dict[str, str]) -> None:
    """Add options of classes to a parser, or a group of it, without defaults; text stays text.

    Args:
        parser: The parser or the group.
        classes: The classes.
        names: Names of their options.
        others: Option of further names, such as ``label_order`` of ``--order``.
    """
    known: dict[str, Option] = {}
    texts: dict[str, str] = {}
    for cls in classes:
        known, texts = options_of(cls) | known, option_texts(cls) | texts
    for name in names:
        text = " ".join(help_text(texts.get(name, "")).replace("%", "%%").split())
        further = [other for other, owner in others.items() if owner == name]
        parser.add_argument(*further, f"--{name}", dest=name, help=text, **_form(known[name]))


def _form(known: Option) -> dict[str, Any]:
    """Return how argparse reads an option."""
    if bool in known.kinds:
        return {"nargs": "?", "const": True, "type": _truth, "metavar": "true|false"}
    if any(get_origin(kind) is Sequence for kind in known.kinds):
        numbers = any(float in get_args(kind) for kind in known.kinds)
        return {"nargs": "+", "metavar": "NAME", "type": float if numbers else str}
    kind = next((kind for kind in (int, float) if kind in known.kinds), str)
    shown = {"metavar": "{" + ",".join(map(str, known.choices)) + "}"} if known.choices else {}
    return {"type": kind, **shown}


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


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
