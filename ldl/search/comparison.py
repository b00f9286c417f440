"""The file of a comparison: its candidates, and how their settings are chosen."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

from ldl.command.arguments import Argument, dotted, plain, typed, words_of
from ldl.command.command_line import Command
from ldl.command.configs import find_config, read_config
from ldl.command.messages import no_option_of
from ldl.command.values import read_value
from ldl.errors import LDLError
from ldl.options import Option
from ldl.search.selection import Selection, Setting
from ldl.validation.yaml_text import dump, resolved

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One candidate of a comparison file.

    Attributes:
        run: The run configuration: a file, its name, or the options themselves.
        options: Dotted options that replace those of the run.
        grid: Dotted options with the values to choose from in every training set.
        tuning: Dotted options for the choice alone, such as fewer trees.
    """

    run: str | dict[str, Any] = ""
    options: Setting = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    tuning: Setting = field(default_factory=dict)

    def settings(self, fixed: set[str]) -> list[Setting]:
        """Return all points of the grid, without the options that the command line has ``fixed``."""
        grid = {name: values for name, values in self.grid.items() if plain(name) not in fixed}
        return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


@dataclass(frozen=True)
class Choose:
    """The options ``choose`` of a comparison file; see :class:`Selection`."""

    inner_folds: int = 3
    val_fraction: float = 0.2


CHOOSE_RANGES = {"inner_folds": Option(least=1), "val_fraction": Option(above=0, below=1)}
"""Ranges of the numbers of :class:`Choose`."""


@dataclass(frozen=True)
class ComparisonFile:
    """A comparison file with the rest of the command line.

    Attributes:
        entries: Candidates by name, the simplest first.
        selection: How settings are chosen.
        common: Parts of the run configuration of all candidates, such as ``data``.
        arguments: The rest of the command line, which holds for all candidates.
        run_dir: Run directory of the command line, or None.
    """

    entries: dict[str, Entry]
    selection: Selection
    common: dict[str, Any]
    arguments: list[Argument]
    run_dir: str | None

    def command(self, entry: Entry, setting: Setting) -> list[str]:
        """Return the command line of a run that trains a candidate in a setting."""
        run = entry.run if isinstance(entry.run, str) else dump(entry.run)
        common = ["-c", dump(self.common)] if self.common else []
        # Another class of data starts from its own defaults, to which the candidate's options are added.
        data = words_of(each for each in self.arguments if each.name == "--data")
        rest = words_of(each for each in self.arguments if each.name != "--data")
        return ["-c", run, *common, *data, *dotted(entry.options), *rest, *dotted(setting), "--stage", "fit"]

    @property
    def fixed(self) -> set[str]:
        """Names of the options of the command line, without ``init_args``."""
        return {each.option for each in self.arguments}


def read_options(cls: type[T], entries: Any, where: str, ranges: Mapping[str, Option]) -> T:
    """Make a dataclass from a mapping in a file.

    Args:
        cls: The dataclass.
        entries: The mapping.
        where: Its place, for messages.
        ranges: Ranges of its numbers.

    Raises:
        LDLError: An option is unknown, has another type or is out of its range.
    """
    if not isinstance(entries, dict):
        raise LDLError(f"{where} is {entries!r}, but must be a mapping of options")
    hints, content = get_type_hints(cls), dict(entries)
    for name, value in entries.items():
        if name not in hints:
            raise LDLError(no_option_of(where, str(name), list(hints)))
        option = replace(ranges.get(name, Option()), annotation=hints[name])
        if not isinstance(value, list | dict):
            value = content[name] = read_value(value, option.kinds)
        kinds = [] if option.choices else [get_origin(kind) or kind for kind in option.kinds]
        if not option.accepts(value) or (kinds and type(value) not in kinds):
            accepted = " or ".join(kind.__name__ for kind in kinds)
            raise LDLError(f"{where}.{name} {value!r} must be {' '.join(filter(None, (accepted, option.range)))}")
    return cls(**content)


def read_comparison(command: Command) -> ComparisonFile:
    """Read the comparison of a command line.

    Raises:
        LDLError: There is not exactly one file, or it has a mistake.
    """
    file = command.stage_config
    path, content = Path(find_config(file)), read_config(file)
    rest = [
        each
        for each in command.arguments
        if each.name not in ("--stage", "--run_dir") and not (each.is_config and each.value == file)
    ]
    entries, choose = content.pop("candidates"), resolved(content.pop("choose", None) or {})
    content.pop("stage", None)
    if not isinstance(entries, dict) or not entries:
        raise LDLError(f"{path}: candidates is {entries!r}, but must be a mapping of names to run configurations")
    choice = read_options(Choose, choose, f"{path}: choose", CHOOSE_RANGES)
    return ComparisonFile(
        {str(name): _read_entry(f"{path}: candidate {name}", entry) for name, entry in entries.items()},
        Selection(inner_folds=choice.inner_folds, val_fraction=choice.val_fraction),
        content,
        rest,
        command.value("run_dir"),
    )


def _read_entry(where: str, content: Any) -> Entry:
    if isinstance(content, dict):
        settings = {name: content[name] for name in ("options", "tuning", "grid") if name in content}
        content = {**content, **typed(where, settings)}
    entry = Entry(content) if isinstance(content, str) else read_options(Entry, content, where, {})
    if not entry.run:
        raise LDLError(f"{where} is {content!r}, but must name a run, such as run: tabular/ldlf")
    for name, values in entry.grid.items():
        if not isinstance(values, list) or not values:
            raise LDLError(f"{where}: grid.{name} is {values!r}, but must be a list of the values to choose from")
    return entry
