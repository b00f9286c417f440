"""Exports of annotation tools in place of a table of votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ldl.annotations.columns import VoteOptions, listed_names
from ldl.annotations.exports.export import export_of
from ldl.annotations.exports.responses import ITEM, LABEL, RATER, ExportOptions
from ldl.annotations.exports.tool_files import RECORDS, ToolFile, open_files
from ldl.annotations.exports.tools import find_tool, tool_of
from ldl.labels import LABEL_PREFIX
from ldl.tables import open_named
from ldl.validation.files import kind_of

ROLES = {ITEM: "item_column", RATER: "rater_column", LABEL: "vote_column"}
"""Options by the columns of the long layout that they name."""

COUNT = "ldl:count"
"""Column with the number of votes, for a moment."""


@dataclass(frozen=True, eq=False)
class ExportTable:
    """The votes in an export as a table, which is read like a file of votes.

    Attributes:
        path: The export.
        table: Its votes. A column that an option names has this name, in place of ``item``, ``rater`` or ``label``.
        notes: Lines about what was taken and left out.
    """

    path: Path
    table: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return list(self.table)

    def texts(self, names: Sequence[str]) -> pd.DataFrame:
        """Return columns, whose entries are text."""
        return self.table[list(names)]


def open_export(path: Path, options: VoteOptions | None = None) -> ExportTable | None:
    """Return the votes in an export of an annotation tool; None for another file (:func:`is_export`).

    Args:
        path: The file.
        options: Options that name columns.

    Raises:
        LDLError: The export cannot be read.
    """
    options = options or VoteOptions()
    if not is_export(path, options):
        return None
    files = open_files([path])
    named = {option: getattr(options, option) for option in ROLES.values()}
    export = export_of(files, tool_of(files), ExportOptions(**named))
    names = {column: named[option] for column, option in ROLES.items() if named[option] is not None}
    votes = _single_votes(export.votes) if LABEL in names and LABEL not in export.votes else export.votes
    replaced = [name for column, name in names.items() if name != column and name in votes]
    return ExportTable(path, votes.drop(columns=replaced).rename(columns=names), export.notes)


def _single_votes(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row a vote from whole counts of votes, so that there is a column of labels, which an option may name."""
    counts = [name for name in table if name.startswith(LABEL_PREFIX)]
    others = [name for name in table if name not in counts]
    votes = table.rename(columns=lambda name: name.removeprefix(LABEL_PREFIX)).melt(
        others, var_name=LABEL, value_name=COUNT
    )
    votes = votes.loc[votes.index.repeat(votes.pop(COUNT).fillna(0).astype(int))]
    return votes.sort_values(ITEM, kind="stable").reset_index(drop=True)


def is_export(path: Path, options: VoteOptions) -> bool:
    """Return whether a file is JSON, a ZIP archive, or a table with the marks of an annotation tool.

    A table of which the options name columns of counts or raters is no export.
    """
    if kind_of(path) in {*RECORDS, ".zip"}:
        return True
    if (table := open_named(path)) is None:
        return False
    columns = [*listed_names(options.label_columns), *listed_names(options.rater_columns), options.votes_column]
    header = ToolFile(str(path), path.stem, pd.DataFrame(columns=table.header))
    is_named = any(header.has([str(column)]) for column in columns if column is not None)
    return not is_named and find_tool(header) is not None
