"""The file of a search: a space and a plan beside, or in, the configuration of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ldl.errors import LDLError
from ldl.running.arguments import dotted, has_key, last_value, options_of, plain
from ldl.running.configs import find_config
from ldl.running.yaml_files import check_config, read_config, read_value
from ldl.tuning.plan import Plan, read_plan
from ldl.tuning.space import Dimension, read_space

OURS = "--tune."
"""Begins options that replace those of the file."""


@dataclass(frozen=True)
class TuneFile:
    """What ``-c RUN.yaml -c TUNE.yaml --stage tune`` says.

    Attributes:
        plan: How the search is done.
        space: What is searched, without options that the command line has, which are not chosen.
        args: The command line of the run without what is searched.
    """

    plan: Plan
    space: list[Dimension]
    args: list[str]

    def command(self, setting: dict[str, Any]) -> list[str]:
        """The command line of ``train.py`` that trains a setting."""
        return [*self.args, *dotted(setting), "--stage", "fit"]


def read_tuning(args: list[str]) -> TuneFile | None:
    """What a command line searches; None where it asks for another stage, or for help.

    Raises:
        LDLError: a space without the stage or the other way round, or a file that is wrong.
    """
    given = options_of(args)
    stage = last_value(given, "--stage")
    files = [option for option in given if option.is_config and has_key(option.value, "tune")]
    if {"-h", "--help"} & set(args) or (stage != "tune" and not files):
        return None
    if stage not in (None, "tune"):
        raise LDLError(f"{files[0].value} holds a search space, and --stage is {stage}; give --stage tune")
    if len(files) != 1:
        raise LDLError(
            "--stage tune takes one file with a search space, such as -c configs/tune/tabular_ldlf.yaml, and here "
            f"{'is none' if not files else f'are {len(files)}'}"
        )
    path = Path(find_config(files[0].value))
    check_config(path)
    rest = read_config(path)
    tune = rest.pop("tune")
    rest.pop("stage", None)
    ours = [option for option in given if option.name.startswith(OURS)]
    if isinstance(tune, dict):
        tune |= {option.name.removeprefix(OURS): read_value(option.name, option.value) for option in ours}
    try:
        plan, space = _read(tune)
    except LDLError as error:
        raise LDLError(f"{path}: {error}") from None
    words: list[str] = []
    for option in given:
        if option is files[0]:
            words += ["-c", yaml.safe_dump(rest)] if rest else []
        elif option not in ours:
            words += option.words
    fixed = {plain(option.name.removeprefix("--")) for option in given}
    free = [dimension for dimension in space if plain(dimension.name) not in fixed]
    if not free:
        raise LDLError(f"{path}: the command line gives all options of tune.space; leave one of them out")
    return TuneFile(plan, free, words)


def _read(tune: Any) -> tuple[Plan, list[Dimension]]:
    if not isinstance(tune, dict):
        raise LDLError(f"tune is {tune!r}, but must be a mapping with a space, such as {{space: ..., trials: 40}}")
    plan = read_plan({name: value for name, value in tune.items() if name != "space"})
    return plan, read_space(tune.get("space"))
