"""The stages of ``--stage``: each registers here by its name, and is imported when a run takes it."""

from __future__ import annotations

from typing import NamedTuple


class StageEntry(NamedTuple):
    """A stage.

    Attributes:
        function: Import path of a function of a :class:`ldl.command.command_line.Command`.
        key: Key of the configuration that belongs to the stage alone; empty for none.
        example: Such a configuration.
    """

    function: str
    key: str = ""
    example: str = ""


STAGES = {
    "fit": StageEntry("ldl.run.run:run"),
    "test": StageEntry("ldl.run.run:run"),
    "predict": StageEntry("ldl.run.run:run"),
    "crossval": StageEntry("ldl.jobs.crossval:run_crossval"),
    "compare": StageEntry("ldl.search.compare:compare", "candidates", "configs/compare/tabular.yaml"),
    "tune": StageEntry("ldl.search.tune:tune", "tune", "configs/tune/tabular_ldlf.yaml"),
}
