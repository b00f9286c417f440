"""The file of a comparison: candidates, each a run configuration with a grid of options to choose from."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ldl.comparison.choice import Choice, Setting
from ldl.errors import LDLError, did_you_mean
from ldl.options import Option
from ldl.running.arguments import dotted, has_key, last_value, options_of, plain, words_of
from ldl.running.configs import find_config
from ldl.running.yaml_files import read_config

MOST_SETTINGS = 1000
"""Of one candidate; a grid with more is a slip."""
DEFAULTS: dict[str, Any] = {"inner_folds": 3, "val_fraction": 0.2}
CHOOSE = {"inner_folds": Option(least=1, most=1000), "val_fraction": Option(above=0, below=1)}


@dataclass(frozen=True)
class Entry:
    """One candidate as the file has it.

    Attributes:
        run: The run configuration: a file, its name, or the options themselves.
        options: Dotted options that replace the run's.
        grid: Dotted options and the values to choose from, in every training part anew.
        tuning: Dotted options while choosing, where the final ones would take long: fewer trees.
    """

    run: str | dict[str, Any]
    options: Setting = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    tuning: Setting = field(default_factory=dict)

    def settings(self, given: set[str]) -> list[Setting]:
        """All points of the grid, without options that the command line has ``given``, which are not chosen."""
        grid = {name: values for name, values in self.grid.items() if plain(name) not in given}
        return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


@dataclass(frozen=True)
class ComparisonFile:
    """What ``-c configs/compare/NAME.yaml`` and the rest of the command line say.

    Attributes:
        candidates: By name, the simplest first.
        choice: How settings are chosen; by itself in three inner folds.
        common: Parts of run configurations that hold for all candidates, such as ``data``.
        args: The rest of the command line, which holds for all of them too.
        run_dir: That of the command line.
    """

    candidates: dict[str, Entry]
    choice: Choice
    common: dict[str, Any]
    args: list[str]
    run_dir: str | None

    def command(self, entry: Entry, setting: Setting) -> list[str]:
        """The command line of ``train.py`` that a candidate is in a setting."""
        run = entry.run if isinstance(entry.run, str) else yaml.safe_dump(entry.run)
        common = ["-c", yaml.safe_dump(self.common)] if self.common else []
        # Another class of data starts from its own defaults, to which the candidate's options are added.
        data = words_of(option for option in options_of(self.args) if option.name == "--data")
        rest = words_of(option for option in options_of(self.args) if option.name != "--data")
        return ["-c", run, *common, *data, *dotted(entry.options), *rest, *dotted(setting), "--stage", "fit"]

    @property
    def given(self) -> set[str]:
        """Names of the options of the command line, without ``init_args``."""
        return {plain(option.name.removeprefix("--")) for option in options_of(self.args)}


def read_comparison(args: list[str]) -> ComparisonFile | None:
    """What a command line compares; None where it asks for another stage, or for help.

    Raises:
        LDLError: candidates without the stage or the other way round, or a file that is wrong.
    """
    given = options_of(args)
    stages = [option.value for option in given if option.name == "--stage"]
    files = [option for option in given if option.is_config and has_key(option.value, "candidates")]
    if {"-h", "--help"} & set(args) or ("compare" not in stages[-1:] and not files):
        return None
    if stages and stages[-1] != "compare":
        raise LDLError(f"{files[0].value} holds candidates, and --stage is {stages[-1]}; give --stage compare")
    if len(files) != 1:
        raise LDLError(
            "--stage compare takes one file of candidates, such as -c configs/compare/tabular.yaml, and here "
            f"{'is none' if not files else f'are {len(files)}'}"
        )
    rest = [option for option in given if option.name not in ("--stage", "--run_dir") and option is not files[0]]
    return _read(Path(find_config(files[0].value)), words_of(rest), last_value(given, "--run_dir"))


def _read(path: Path, args: list[str], run_dir: str | None) -> ComparisonFile:
    content = read_config(path)
    given, choose = content.pop("candidates"), content.pop("choose", None) or {}
    content.pop("stage", None)
    if not isinstance(given, dict) or not given:
        raise LDLError(f"{path}: candidates is {given!r}, but must be a mapping of names to run configurations")
    if not isinstance(choose, dict) or (unknown := set(choose) - set(CHOOSE)):
        bad = choose if not isinstance(choose, dict) else sorted(unknown)[0]
        raise LDLError(f"{path}: choose has no option {bad!r} (its options: {', '.join(CHOOSE)})")
    for name, value in choose.items():
        kind = int if name == "inner_folds" else (int, float)
        if isinstance(value, bool) or not isinstance(value, kind) or not CHOOSE[name].accepts(value):
            raise LDLError(f"{path}: choose.{name} {value!r} must be {CHOOSE[name].range}")
    entries = {str(name): _entry(f"{path}: candidate {name}", entry) for name, entry in given.items()}
    return ComparisonFile(entries, Choice(**DEFAULTS | choose), content, args, run_dir)


def _entry(where: str, given: Any) -> Entry:
    given = {"run": given} if isinstance(given, str) else given
    if not isinstance(given, dict) or not isinstance(given.get("run"), str | dict):
        raise LDLError(f"{where} is {given!r}, but must name a run, such as run: tabular/ldlf")
    known = list(Entry.__dataclass_fields__)
    for key, part in given.items():
        if key not in known:
            raise LDLError(f"{where} has no option {key!r}{did_you_mean(key, known)} (its options: {', '.join(known)})")
        if key != "run" and not isinstance(part, dict):
            raise LDLError(f"{where}: {key} is {part!r}, but must be a mapping of dotted options, such as data.scaling")
    count = 1
    for name, values in given.get("grid", {}).items():
        if not isinstance(values, list) or not values:
            raise LDLError(f"{where}: grid.{name} is {values!r}, but must be a list of the values to choose from")
        count *= len(values)
    if count > MOST_SETTINGS:
        raise LDLError(f"{where} has a grid of {count:,} settings, more than {MOST_SETTINGS:,}; give fewer values")
    return Entry(**given)
