"""Stages of ``--stage``: ldl and other packages register them by entry points, and a run imports only its own."""

from __future__ import annotations

from typing import NamedTuple

from ldl.errors import LDLError, did_you_mean
from ldl.plugins import STAGES, load_registered


class StageEntry(NamedTuple):
    """A stage.

    Attributes:
        function: Import path of a function of a :class:`ldl.command.command_line.Command`.
        text: Its description in the help.
        key: Key of the configuration that belongs to the stage alone; empty for none.
        example: Such a configuration.
    """

    function: str
    text: str
    key: str = ""
    example: str = ""


FIT = StageEntry("ldl.run.run:run", "train, then test")
TEST = StageEntry("ldl.run.run:run", "test a checkpoint on the data")
PREDICT = StageEntry("ldl.run.run:run", "predict the data with a checkpoint")
CROSSVAL = StageEntry("ldl.jobs.crossval:run_crossval", "fit and test every fold")


def stages() -> dict[str, StageEntry]:
    """Return the registered stages by name."""
    return load_registered(STAGES)


def find_stage(name: str) -> StageEntry:
    """Return a stage by its name. Raises LDLError if no package registers it."""
    if name not in stages():
        raise LDLError(
            f"stage is {name!r}, but must be one of {', '.join(map(repr, stages()))}{did_you_mean(name, stages())}"
        )
    return stages()[name]
