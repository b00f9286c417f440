"""Responses to a question, as an annotation tool holds them, and the cells that it writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ldl.errors import LDLError, did_you_mean, some
from ldl.tables.entries import MISSING, spelling

ITEM, RATER, LABEL = "item", "rater", "label"
"""Columns of the long layout, which :func:`ldl.annotations.read_annotations` finds by their names."""
NO_ANSWER = "without an answer"
OTHER_VERSION = "of another version of the workflow"
VALUES = ("choices", "rating", "number", "text", "taxonomy", "label", "choice", "value")
"""Keys of JSON objects that hold an answer."""


@dataclass
class Responses:
    """V responses to one question.

    Attributes:
        question: Name of the question; empty if the tool has none.
        items: (V,) item of each response; None if it must be named.
        raters: (V,) rater of each response; None if unknown.
        answers: (V,) the cells with the answers, as the tool writes them.
        columns: V rows of further columns, which may describe the items.
        reasons: (V,) why a response is left out, such as ``rejected``; empty for one that counts.
        item: Name of the column or key of the items.
        rater: Name of the column or key of the raters.
        counts: V rows with the number of votes for each label, in place of answers.
        notes: Lines about the reading.
    """

    question: str
    items: Sequence[Any] | None
    raters: Sequence[Any] | None
    answers: Sequence[Any]
    columns: pd.DataFrame
    reasons: Sequence[str] | None = None
    item: str = ""
    rater: str = "unknown"
    counts: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ExportOptions:
    """Options that overrule what a tool's export is read as, as in :func:`ldl.annotations.exports.read_export`."""

    item_column: str | None = None
    rater_column: str | None = None
    vote_column: str | None = None
    workflow_version: str = "latest"


def choose_question(questions: Iterable[str], options: ExportOptions, source: str) -> str:
    """Return the question that ``vote_column`` names, with or without its prefix, or the only one.

    The name ``label``, that of the votes in the long layout, stands for the only question unless one has this name.

    Raises:
        LDLError: There is no question, there are several, or none has the name.
    """
    questions = list(dict.fromkeys(questions))
    wanted = options.vote_column
    if (match := find_name(wanted, questions)) is not None:
        return match
    if wanted not in (None, LABEL):
        raise LDLError(
            f"{source} has no question {wanted!r}{did_you_mean(wanted, questions)}; it has {some(questions)}; correct "
            "vote_column"
        )
    if len(questions) == 1:
        return questions[0]
    if questions:
        raise LDLError(f"{source} may have several questions, {some(questions)}; name one with vote_column")
    raise LDLError(f"{source} has no question that somebody answered; name its column with vote_column")


def find_name(wanted: str | None, names: Iterable[str]) -> str | None:
    """Return the name that is ``wanted``, or ``wanted`` behind a prefix such as ``Answer.``; None if there is none."""
    names = list(names)
    if wanted is None or wanted in names:
        return wanted
    behind = [name for name in names if name.endswith((f".{wanted}", f":{wanted}"))]
    return behind[0] if len(behind) == 1 else None


def answer_columns(table: pd.DataFrame, items: Any, columns: Sequence[str]) -> list[str]:
    """Return the columns that hold answers: they differ between the responses to an item, or hold ``choices``.

    If no column differs, these are columns in which entries recur, and which have fewer entries than there are items.
    """
    cells = table[list(columns)].astype(str)
    cells = cells.loc[:, [not _is_region(cells[name]) for name in cells]]
    keys = pd.Series(np.asarray(items, object), index=table.index).astype(str)
    most = cells.groupby(keys).nunique().max()
    differing = [name for name in cells if most[name] > 1 or cells[name].str.startswith('{"choices"').any()]
    if differing:
        return differing
    filled = [name for name in cells if (cells[name] != "").any()]
    return [name for name in filled if cells[name].nunique() < min(keys.nunique(), len(cells))]


def _is_region(cells: pd.Series) -> bool:
    """Return whether cells are lists of objects, such as boxes and spans, which are no labels."""
    filled = cells[cells != ""]
    return bool(len(filled)) and bool(filled.str.match(r"\s*\[\s*\{").all())


def label_of(answer: Any) -> str:
    """Return the label in an answer; several labels as a list in JSON; empty for none.

    Args:
        answer: Text, a number, a list, an object with one of :data:`VALUES`, or JSON of it; None for no answer.
    """
    labels = list(dict.fromkeys(_labels(answer)))
    return labels[0] if len(labels) == 1 else json.dumps(labels, ensure_ascii=False) if labels else ""


def _labels(answer: Any) -> list[str]:
    """Return the labels in an answer."""
    if isinstance(answer, str) and answer.strip()[:1] in ("{", "["):
        try:
            parsed = json.loads(answer)
        except ValueError:
            parsed = None
        if isinstance(parsed, list | dict):
            return _labels(parsed)
    if isinstance(answer, dict):
        held = [answer[key] for key in VALUES if key in answer]
        return _labels(held[0]) if held else []
    if isinstance(answer, list):
        return [label for each in answer for label in _labels(each)]
    return [label] if (label := spelling(answer)) else []


def texts_of(cells: Iterable[Any]) -> list[str]:
    """Return the spelling of each cell; empty if it is missing."""
    return [spelling(cell) for cell in cells]


def is_true(cells: pd.Series) -> np.ndarray:
    """Return whether each cell of text says true, (V,)."""
    return cells.astype(str).str.strip().str.lower().isin(("true", "1", "yes")).to_numpy()


def is_filled(cells: pd.Series) -> np.ndarray:
    """Return whether each cell of text holds something, (V,)."""
    return ~cells.astype(str).str.strip().str.lower().isin(MISSING).to_numpy()


def reasons_of(size: int, **rows: np.ndarray) -> list[str]:
    """Return why each of ``size`` responses is left out: the first name whose array is true there, or nothing."""
    reasons = np.full(size, "", object)
    for reason, marked in reversed(rows.items()):
        reasons[marked] = reason.replace("_", " ")
    return list(reasons)
