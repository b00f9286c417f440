"""The words of a command line, before the parser sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ldl.running.configs import find_config


class Given(NamedTuple):
    """An option of a command line, with its value and as it stands there."""

    name: str
    value: str
    words: list[str]

    @property
    def is_config(self) -> bool:
        """Whether it names a configuration."""
        return self.name in ("-c", "--config")


def options_of(args: list[str]) -> list[Given]:
    """The options of a command line in their order."""
    waiting, found = list(args), []
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
    """The command line of some options."""
    return [word for option in options for word in option.words]


def below(options: Iterable[Given], part: str) -> list[str]:
    """What is given of a part of the configuration: ``depth``, ``head.threads``; empty names the part itself."""
    given = [option.name.removeprefix("--").split(".") for option in options]
    place = part.split(".")
    inside = [names[len(place) :] for names in given if names[: len(place)] == place]
    return [".".join(name for name in names if name not in ("class_path", "init_args")) for names in inside]


def last_value(options: Iterable[Given], name: str) -> str | None:
    """What an option is, where it is given; of several the last one counts."""
    return next((option.value for option in reversed(list(options)) if option.name == name), None)


def dotted(options: dict[str, Any]) -> list[str]:
    """The command line of options by their dotted names."""
    return [f"--{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in options.items()]


def plain(name: str) -> str:
    """The name of an option as the command line has it, without ``init_args``."""
    return name.replace(".init_args", "")


def has_key(given: str, key: str) -> bool:
    """Whether the configuration that ``-c`` names is a file with this key."""
    path = Path(find_config(given))
    try:
        return re.search(rf"^{key}\s*:", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
    except OSError:
        return False  # YAML on the command line
