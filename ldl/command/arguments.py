"""The command line as a list of options: it is tokenised here once, before the parser reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ldl.errors import LDLError
from ldl.moved import current_option
from ldl.validation.yaml_text import Quoted, Scalar, load_option, resolved, spelling


class Given(NamedTuple):
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
        return self.name in ("-c", "--config")


def tokenize(args: list[str]) -> list[Given]:
    """Return the options of a command line in their order."""
    waiting, found = list(map(current_option, args)), []
    while waiting:
        name, equals, value = (first := waiting.pop(0)).partition("=")
        if _is_option(first) and equals:
            found.append(Given(name, value, [first]))
        elif first.startswith("-") and waiting and not _is_option(waiting[0]):
            found.append(Given(first, waiting[0], [first, waiting.pop(0)]))
        else:
            found.append(Given(first, "", [first]))
    return found


def _is_option(word: str) -> bool:
    # A value may begin with one dash, as numbers do.
    return word.startswith("--") or word.partition("=")[0] in ("-c", "-h")


def words_of(options: Iterable[Given]) -> list[str]:
    """Return the command line of some options."""
    return [word for option in options for word in option.words]


def last_value(options: Iterable[Given], name: str) -> str | None:
    """Return the value of an option, the last one if it is given several times; None if it is not given."""
    return next((option.value for option in reversed(list(options)) if option.name == name), None)


def below(options: Iterable[Given], part: str) -> list[str]:
    """Return the options of one part of the configuration, such as ``depth`` of ``model.head``.

    An empty text stands for the part itself.
    """
    place = part.split(".")
    given = [option.name.removeprefix("--").split(".") for option in options]
    inside = [names[len(place) :] for names in given if names[: len(place)] == place]
    return [".".join(name for name in names if name not in ("class_path", "init_args")) for names in inside]


def dotted(options: dict[str, Any]) -> list[str]:
    """Return the command line of options that are given by their dotted names."""
    return [f"--{name}={_word(value)}" for name, value in options.items()]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else spelling(value)


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
