"""What the command line knows: its options, and the heads, backbones and data with theirs. As plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

BASES = ("model.head", "model.backbone", "data")
"""Options that name a class, whose own options follow behind a dot."""


@dataclass(frozen=True)
class OptionEntry:
    """An option of the command line or of a class.

    Attributes:
        name: Its name, without dashes.
        kind: Its type in words; empty where the option only asks for help.
        default: Its default as text.
        text: What it does.
        range: What is accepted, where that is not said by the type.
        choices: The values, where there are only these.
        is_open: Whether options of their own may follow behind a dot.
    """

    name: str
    kind: str = ""
    default: str = ""
    text: str = ""
    range: str = ""
    choices: tuple[str, ...] = ()
    is_open: bool = False


@dataclass(frozen=True)
class ClassEntry:
    """A head, a backbone or a data module.

    Attributes:
        base: One of ``BASES``.
        name: The name of the class.
        path: Its import path.
        text: Its docstring, without lists of arguments and attributes.
        traits: What a table says of it, such as how it learns, by the names of the columns.
        options: Its options.
        is_open: Whether it may take options that are not listed.
    """

    base: str
    name: str
    path: str
    text: str
    traits: dict[str, str] = field(default_factory=dict)
    options: tuple[OptionEntry, ...] = ()
    is_open: bool = False

    @property
    def summary(self) -> str:
        """The first sentence of its docstring, in one line."""
        return " ".join(self.text.split("\n\n")[0].split()).rstrip(".:").replace("``", "")


@dataclass(frozen=True)
class Schema:
    """All options, and all classes that can be named."""

    options: tuple[OptionEntry, ...]
    classes: tuple[ClassEntry, ...]

    @cached_property
    def names(self) -> dict[str, OptionEntry]:
        """The options by name."""
        return {entry.name: entry for entry in self.options}

    def of(self, base: str) -> list[ClassEntry]:
        """The classes of one of ``BASES``, by name."""
        return sorted((entry for entry in self.classes if entry.base == base), key=lambda entry: entry.name.lower())

    def find(self, base: str, given: str) -> ClassEntry | None:
        """The class of a name or an import path; None where there is none, or several have the name."""
        found = [entry for entry in self.of(base) if given in (entry.name, entry.path)]
        return found[0] if len(found) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Schema:
        """Of what :meth:`to_dict` gave. Raises KeyError or TypeError for anything else."""
        classes = (ClassEntry(**{**entry, "options": _options(entry["options"])}) for entry in content["classes"])
        return cls(_options(content["options"]), tuple(classes))


def _options(entries: list[dict[str, Any]]) -> tuple[OptionEntry, ...]:
    return tuple(OptionEntry(**{**entry, "choices": tuple(entry["choices"])}) for entry in entries)
