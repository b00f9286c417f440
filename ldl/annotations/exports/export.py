"""Votes in the long layout from the files that annotation tools write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ldl.annotations.exports.responses import (
    ITEM,
    LABEL,
    NO_ANSWER,
    OTHER_VERSION,
    RATER,
    ExportOptions,
    Responses,
    find_name,
    label_of,
)
from ldl.annotations.exports.tool_files import ToolFile, open_files
from ldl.annotations.exports.tools import Tool, tool_of
from ldl.errors import LDLError, did_you_mean, some
from ldl.labels import LABEL_PREFIX
from ldl.tables.entries import spelling

BASE64 = "data:[^,]*;base64,"
"""Beginning of an image or another file that stands in a cell."""


@dataclass(frozen=True, eq=False)
class Export:
    r"""The votes in files of an annotation tool.

    Attributes:
        votes: Table with a row a vote: ``item``, ``rater`` if raters are known, ``label``, several labels as a list in
            JSON, and the columns of the item; or with a row an item, and a column ``label:NAME`` with the number of
            votes for each label.
        notes: Lines that say what was taken, what was left out and why, and which option decides otherwise.

    Examples:
        >>> from pathlib import Path
        >>> from ldl.annotations import read_export
        >>> lines = ["annotation_id,annotator,id,lead_time,mood", "9,ann,4,10.7,good", "10,ben,4,7.2,bad"]
        >>> _ = Path("export.csv").write_text("\n".join(lines))
        >>> print(read_export("export.csv").votes)
          item rater label
        0    4   ann  good
        1    4   ben   bad
    """

    votes: pd.DataFrame
    notes: tuple[str, ...]


def read_export(
    paths: str | Path | Iterable[str | Path],
    tool: str | None = None,
    *,
    item_column: str | None = None,
    rater_column: str | None = None,
    vote_column: str | None = None,
    workflow_version: str = "latest",
    keep: Sequence[str] = (),
) -> Export:
    """Read the votes in files that an annotation tool wrote: tables, JSON, a JSON object a line, or a ZIP of them.

    Args:
        paths: One file, or several of one tool, such as a file a rater.
        tool: Name of the tool in :data:`ldl.annotations.exports.TOOLS`; ``none`` for other tables and JSON. None
            recognises it by its columns or keys.
        item_column: Column or key that names the item; None takes that of the tool. In JSON of no known tool a path,
            such as ``annotations[].user``, where ``[]`` stands for each entry of a list.
        rater_column: Column or key of the rater.
        vote_column: Question whose answers are the votes, with or without its prefix; None takes the only one.
        workflow_version: Version of a workflow of Zooniverse; ``latest``, or ``all``.
        keep: Reasons for leaving votes out, such as ``gold`` or ``rejected``, that do not apply.

    Raises:
        LDLError: A file cannot be read, an option names nothing in the files, several questions are there and none is
            named, or no vote is left.
    """
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    files = open_files([Path(path) for path in paths])
    options = ExportOptions(item_column, rater_column, vote_column, workflow_version)
    return export_of(files, tool_of(files, tool), options, keep)


def export_of(files: Sequence[ToolFile], tool: Tool, options: ExportOptions, keep: Sequence[str] = ()) -> Export:
    """Return the votes in files of a tool, as :func:`read_export` does. Raises LDLError."""
    try:
        responses = tool.read(files, options)
    except (KeyError, TypeError, AttributeError) as error:
        raise LDLError(
            f"{files[0].name} has not what {tool.title} writes, {error}; name its tool with tool, or pass none to read "
            "it by the names of its columns"
        ) from error
    return _Writer(responses, files, tool, options, keep).export()


@dataclass
class _Writer:
    """Writes responses as votes; ``name`` is that of the files in messages."""

    responses: Responses
    files: Sequence[ToolFile]
    tool: Tool
    options: ExportOptions
    keep: Sequence[str]

    @cached_property
    def name(self) -> str:
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.files[0].name}{more}"

    def export(self) -> Export:
        """Return the votes and the notes. Raises LDLError."""
        responses = self.responses
        items = self._role("item", responses.items)
        raters = self._role("rater", responses.raters)
        votes = pd.DataFrame({ITEM: items})
        if raters is not None:
            votes[RATER] = raters
        if responses.counts is not None:
            counts = responses.counts.add_prefix(LABEL_PREFIX)
            votes = pd.concat([votes, counts], axis=1)
            is_empty = ~(responses.counts.fillna(0) > 0).any(axis=1).to_numpy()
        else:
            votes[LABEL] = [label_of(answer) for answer in responses.answers]
            is_empty = (votes[LABEL] == "").to_numpy()
        reasons = np.array(responses.reasons or [""] * len(votes), object)
        self._check_kept(reasons)
        reasons[np.isin(reasons, self.keep)] = ""
        reasons[(reasons == "") & is_empty] = NO_ANSWER
        taken = reasons == ""
        if not taken.any():
            raise LDLError(f"{self.name}: {self.tool.title}: no vote is left; {_left_out(reasons)}")
        votes, columns = votes[taken].reset_index(drop=True), responses.columns[taken].reset_index(drop=True)
        described, notes = self._item_columns(votes, columns)
        notes = [self._summary(votes, reasons), *responses.notes, *notes]
        return Export(pd.concat([votes, described], axis=1), tuple(notes))

    def _role(self, role: str, usual: Sequence[Any] | None) -> np.ndarray | None:
        """Return the spelling of the item or rater of each response: of the column that an option names, or the usual.

        Raises LDLError for an unknown column, and for a missing item or rater.
        """
        wanted, columns = self._named(role), self.responses.columns
        if wanted is not None:
            if (name := find_name(wanted, columns)) is None:
                raise LDLError(
                    f"{self.name} has no column {wanted!r}{did_you_mean(wanted, columns)} for the {role}; pass one of "
                    f"{some(list(columns))} as {role}_column, or leave it out"
                )
            usual = columns[name]
        if usual is None and role == "item":
            raise LDLError(
                f"{self.name}: several columns may name the item, {some(list(columns))}; name one with item_column"
            )
        return None if usual is None else np.array([spelling(entry) for entry in usual], object)

    def _named(self, role: str) -> str | None:
        """Return the column that an option names for a role; None for the usual one, or that of the long layout."""
        wanted: str | None = getattr(self.options, f"{role}_column")
        return None if not self.tool.marks or wanted in (role, getattr(self.responses, role)) else wanted

    def _check_kept(self, reasons: np.ndarray) -> None:
        """Raise LDLError if ``keep`` names a reason for which nothing is left out."""
        present = [str(reason) for reason in dict.fromkeys(reasons) if reason not in ("", OTHER_VERSION)]
        if absent := [reason for reason in self.keep if reason not in present]:
            raise LDLError(
                f"{self.name} has no votes that are {absent[0]!r}, so keep has no use for it; it has {some(present)}"
            )

    def _item_columns(self, votes: pd.DataFrame, columns: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
        """Return the columns that are the same for all votes on an item, and a note about others."""
        named = [find_name(self._named(role), columns) for role in (ITEM, RATER)]
        filled = columns.loc[:, (columns.astype(str) != "").any()]
        columns = filled.drop(columns=[name for name in named if name in filled])
        most = columns.groupby(votes[ITEM].to_numpy()).nunique(dropna=False).max()
        reasons = {
            "have the names of columns of votes": [c for c in columns if c in votes or c.startswith(LABEL_PREFIX)],
            "hold files in base64": [c for c in columns if columns[c].astype(str).str.match(BASE64).any()],
            "differ between votes on an item": [c for c in columns if most[c] > 1],
        }
        notes = []
        for reason, names in reasons.items():
            if dropped := [name for name in names if name in columns]:
                notes.append(f"{self.name}: {some(dropped)} {reason} and are left out")
                columns = columns.drop(columns=dropped)
        return columns, notes

    def _summary(self, votes: pd.DataFrame, reasons: np.ndarray) -> str:
        """Return the line about what was taken and left out."""
        responses = self.responses
        items = votes[ITEM].nunique()
        if responses.counts is not None:
            total = votes.filter(like=LABEL_PREFIX).sum().sum()
            taken = f"{total:g} votes on {items} items"
        else:
            raters = f" by {votes[RATER].nunique()} raters" if RATER in votes else ""
            taken = f"{len(votes)} votes{raters} on {items} items"
        asked = f"question {responses.question!r}, " if responses.question else ""
        roles = f"item {self._named('item') or responses.item}, rater {self._named('rater') or responses.rater}"
        left = _left_out(reasons)
        several = int(votes[LABEL].map(_is_several).sum()) if LABEL in votes else 0
        more = f"; {several} of them with several labels, which multiple decides" if several else ""
        read = f"read as {self.tool.title}, which ldl votes --tool decides" if self.tool.marks else self.tool.title
        return f"{self.name}: {read}: {asked}{roles}; {taken} are taken{more}; {left}"


def _is_several(label: str) -> bool:
    return label.startswith('["') and label.endswith('"]')


def _left_out(reasons: np.ndarray) -> str:
    """Return words about the number of responses that are left out, by their reasons."""
    counts = Counter(reason for reason in reasons if reason)
    if not counts:
        return "nothing is left out"
    shown = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    keepable = [reason for reason in counts if reason not in (NO_ANSWER, OTHER_VERSION)]
    return f"{shown} are left out" + (f"; ldl votes --keep {' '.join(keepable)} counts them" if keepable else "")
