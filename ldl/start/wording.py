"""What is said of names that do not exist, whoever finds out: the check before everything, or the parser."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from ldl.errors import did_you_mean

MOST_SHOWN = 40
"""Classes that are listed in a message."""


def program() -> str:
    """What was typed: ``python train.py``, or ``ldl``."""
    return "python train.py" if Path(sys.argv[0]).name == "train.py" else "ldl"


def version() -> str:
    """The version that is installed."""
    return importlib.metadata.version("ldl")


def no_option(name: str, options: Iterable[str]) -> str:
    """There is no such option on the command line."""
    return f"unknown option --{name}{did_you_mean(name, options)}; see {program()} --help"


def no_option_of(owner: str, name: str, known: Collection[str]) -> str:
    """A class has no such option."""
    return f"{owner} has no option {name!r}{did_you_mean(name, known)} (its options: {', '.join(known) or 'none'})"


def no_class(key: str, kind: str, base: str, name: str, known: Iterable[str]) -> str:
    """There is no such head, backbone or data module; ``base`` is where a class of this ``kind`` comes from."""
    names = sorted(set(known))
    shown = ", ".join(names) if len(names) <= MOST_SHOWN else f"any {base}.{kind}"
    return f"{key}: there is no {kind} {name!r}{did_you_mean(name, names)} (known: {shown})"


def no_choice(key: str, value: str, choices: str) -> str:
    """An option takes a few values, and this is none of them."""
    return f"{key} is {value!r}, but must be one of {choices}"
