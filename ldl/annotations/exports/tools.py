"""The annotation tools whose exports are read, each with the columns or keys by which its files are recognised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldl.annotations.exports import crowds, json_exports, plain, surveys, zooniverse
from ldl.annotations.exports.responses import ExportOptions, Responses
from ldl.annotations.exports.tool_files import ToolFile
from ldl.errors import LDLError, did_you_mean


@dataclass(frozen=True)
class Tool:
    """An annotation tool.

    Attributes:
        title: Its name in messages.
        marks: Names and patterns of the columns or keys that all of its files have.
        read: Function that returns the responses in its files. Raises LDLError.
        of_tables: Whether its files are tables, JSON otherwise; None for both.
        keyed: Whether its JSON is one object with the items by their keys.
        check: Function that returns whether a file with the marks is one of the tool; None takes all.
    """

    title: str
    marks: tuple[str, ...]
    read: Callable[[Sequence[ToolFile], ExportOptions], Responses]
    of_tables: bool | None = True
    keyed: bool = False
    check: Callable[[ToolFile], bool] | None = None

    def wrote(self, file: ToolFile) -> bool:
        """Return whether a file has the marks of the tool."""
        of_tables = file.table is not None
        has_marks = self.of_tables in (None, of_tables) and self.keyed == file.keyed and file.has(self.marks)
        return has_marks and (self.check is None or self.check(file))


TOOLS = {
    "label_studio": Tool("Label Studio", ("id", "data", "annotations"), json_exports.label_studio, False),
    "label_studio_min": Tool(
        "Label Studio (CSV or JSON-MIN)", ("annotation_id", "annotator", "id"), json_exports.label_studio_min, None
    ),
    "prodigy": Tool("Prodigy", ("_input_hash", "answer"), json_exports.prodigy, False),
    "argilla": Tool("Argilla", ("fields", "responses", "suggestions"), json_exports.argilla, False),
    "doccano": Tool("doccano", ("id", "label"), json_exports.doccano, False, check=json_exports.lists_labels),
    "lewidi": Tool("LeWiDi", ("annotations", "annotators"), json_exports.lewidi, False, keyed=True),
    "zooniverse": Tool(
        "Zooniverse classifications",
        ("classification_id", "user_name", "annotations", "subject_ids"),
        zooniverse.classifications,
    ),
    "panoptes": Tool("Panoptes reductions", ("subject_id", "workflow_id", "data.*"), zooniverse.reductions),
    "mturk": Tool("Mechanical Turk", ("HITId", "WorkerId", "AssignmentStatus", "Answer.*"), crowds.mechanical_turk),
    "appen": Tool("Appen, full report", ("_unit_id", "_worker_id", "_trust"), crowds.appen),
    "appen_aggregated": Tool(
        "Appen, aggregated report", ("_unit_id", "_trusted_judgments", "*:confidence"), crowds.appen_aggregated
    ),
    "toloka": Tool("Toloka", ("OUTPUT:*", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"), crowds.toloka),
    "qualtrics": Tool("Qualtrics", ("ResponseId", "RecordedDate"), surveys.qualtrics),
    "google_forms": Tool("Google Forms", ("Timestamp", "*[[]*]"), surveys.google_forms),
}
"""Tools by their names in options."""
NONE = Tool("no known tool", (), plain.plain_votes, None)
"""Tables and JSON of no tool, ``none``."""


def find_tool(file: ToolFile) -> str | None:
    """Return the name of the tool that wrote a file, by its marks; None if it has those of no tool."""
    return next((name for name, tool in TOOLS.items() if tool.wrote(file)), None)


def tool_of(files: Sequence[ToolFile], name: str | None = None) -> Tool:
    """Return the tool that wrote the files, or the tool with this ``name``.

    Raises:
        LDLError: The name is of no tool, or several tools wrote the files.
    """
    if name is not None:
        if name not in (accepted := [*TOOLS, "none"]):
            raise LDLError(f"unknown tool {name!r}; one of {', '.join(accepted)}{did_you_mean(name, accepted)}")
        return TOOLS.get(name, NONE)
    tools = {file.name: find_tool(file) for file in files}
    names: list[str | None] = list(dict.fromkeys(tools.values()))
    if set(names) == {"lewidi", None} and all(file.keyed for file in files):
        names = ["lewidi"]  # a file about the annotators lies beside the items
    if len(names) > 1:
        others = ", ".join(f"{file} {tool or 'none'}" for file, tool in list(tools.items())[:4])
        raise LDLError(f"the files are of several tools, {others}; give those of one tool, or name it with tool")
    return TOOLS.get(names[0] or "", NONE)
