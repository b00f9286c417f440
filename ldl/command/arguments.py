"""The words of a command line as arguments: they are tokenised here once, before the parser reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ldl.errors import LDLError
from ldl.moved import current_option
from ldl.validation.yaml_text import Quoted, Scalar, load_option, resolved, spelling


class Argument(NamedTuple):
    """An option of a command line.

    Attributes:
        name: Its name, with its dashes.
        value: Its value; empty for none.
        words: The words of the command line that give it.
    """

    name: str
    value: str
    words: list[str]

    @property
    def is_config(self) -> bool:
        """Whether the option names a configuration."""
        return self.name in ("-c", "--config") and bool(self.value)

    @property
    def option(self) -> str:
        """Its name as users write it, without dashes and ``init_args``."""
        return plain(self.name.removeprefix("--"))


def tokenize(words: list[str]) -> list[Argument]:
    """Return the arguments of a command line in their order."""
    rest, arguments = list(map(current_option, words)), []
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if _is_option(word) and equals:
            arguments.append(Argument(name, value, [word]))
        elif word.startswith("-") and rest and not _is_option(rest[0]):
            arguments.append(Argument(word, rest[0], [word, rest.pop(0)]))
        else:
            arguments.append(Argument(word, "", [word]))
    return arguments


def _is_option(word: str) -> bool:
    # A value may begin with one dash, as numbers do.
    return word.startswith("--") or word.partition("=")[0] in ("-c", "-h")


def argument(name: str, value: str) -> Argument:
    """Return the argument ``--name value``."""
    return Argument(f"--{name}", value, [f"--{name}", value])


def words_of(arguments: Iterable[Argument]) -> list[str]:
    """Return the command line of some arguments."""
    return [word for each in arguments for word in each.words]


def below(arguments: Iterable[Argument], prefix: str) -> list[str]:
    """Return the options of one part of the configuration, such as ``depth`` of ``model.head``.

    An empty text stands for the part itself.
    """
    start = prefix.split(".")
    paths = [each.name.removeprefix("--").split(".") for each in arguments]
    inside = [path[len(start) :] for path in paths if path[: len(start)] == start]
    return [".".join(name for name in path if name not in ("class_path", "init_args")) for path in inside]


def dotted(options: dict[str, Any]) -> list[str]:
    """Return the command line of options that are given by their dotted names."""
    return [f"--{name}={_word(value)}" for name, value in options.items()]


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, dict | list) else spelling(value)


def typed(where: str, content: Any) -> Any:
    """Return values of a file for :func:`dotted`: 007 and 1e-3 stay texts, until the type of their option decides.

    Raises LDLError for a text in quotes that a command line cannot spell.
    """
    if isinstance(content, Quoted) and load_option(content) != content:
        raise LDLError(f"{where} is the text {str(content)!r}, which no command line can give; take another text")
    if isinstance(content, dict):
        return {name: typed(f"{where}.{name}", value) for name, value in content.items()}
    if isinstance(content, list):
        return [typed(where, each) for each in content]
    return content.text if isinstance(content, Scalar) else resolved(content)


def plain(name: str) -> str:
    """Return the name of an option as users write it, without ``init_args``."""
    return name.replace(".init_args", "")
