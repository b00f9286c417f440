"""A command line with the configurations that it names, and the configuration beside its checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ldl.command.arguments import Argument, tokenize
from ldl.command.classes import class_paths
from ldl.command.config import Config, parse
from ldl.command.configs import has_key, merge_configs, read_config
from ldl.command.stages import StageEntry, find_stage, stages
from ldl.errors import LDLError
from ldl.plugins import discover
from ldl.run.output import silence


@dataclass(frozen=True)
class Command:
    """A command line of a run, tokenised once.

    Attributes:
        arguments: Its options in their order.
        base: Content of a configuration below those that the command line names; empty for none.
    """

    arguments: Sequence[Argument]
    base: dict[str, Any] | None = None

    @property
    def configs(self) -> list[str]:
        """Configurations that the command line names."""
        return [each.value for each in self.arguments if each.is_config]

    def value(self, name: str) -> str | None:
        """Return the value that the command line gives an option, the last one of several; None for none."""
        return next((each.value for each in reversed(self.arguments) if each.name == f"--{name}"), None)

    @cached_property
    def content(self) -> dict[str, Any]:
        """The merged content of all configurations."""
        return merge_configs([*([self.base] if self.base else []), *map(read_config, self.configs)])

    @cached_property
    def stage(self) -> str:
        """The stage by ``--stage``, by a configuration that belongs to a stage alone, or by any; ``fit`` by default."""
        named = self.value("stage")
        for name, stage in stages().items():
            if stage.key and (named == name or self._with_key(stage.key)):
                return name
        return str(self.content.get("stage", "fit") if named is None else named)

    @property
    def stage_entry(self) -> StageEntry:
        """The registered stage. Raises LDLError for a stage that does not exist."""
        return find_stage(self.stage)

    @property
    def stage_config(self) -> str:
        """The only configuration that belongs to the stage alone.

        Raises:
            LDLError: The configuration is given with another stage, or there is not exactly one.
        """
        key, files, named = self.stage_entry.key, self._with_key(self.stage_entry.key), self.value("stage")
        if named not in (None, self.stage):
            raise LDLError(f"{files[0]} has the key {key}, and --stage is {named}; give --stage {self.stage}")
        if len(files) != 1:
            number = f"are {len(files)}" if files else "is none"
            raise LDLError(
                f"--stage {self.stage} takes one file with the key {key}, such as -c {self.stage_entry.example}, and "
                f"here {number}"
            )
        return files[0]

    def _with_key(self, key: str) -> list[str]:
        return [name for name in self.configs if has_key(name, key)]

    @cached_property
    def config(self) -> Config:
        """The configuration of the run, parsed at the first use."""
        return parse(self.content, self.arguments)


def parse_anew(words: list[str]) -> Config:
    """Parse the command line of a run that another process has begun."""
    silence()
    discover()
    with class_paths(None):
        return Command(tokenize(words)).config
