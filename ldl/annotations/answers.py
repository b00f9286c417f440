"""The cells of votes: their labels, gaps, answers that are no votes, and rows that are none of a table."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from ldl.annotations.columns import VoteColumns
from ldl.annotations.labels import unused
from ldl.errors import LDLError, did_you_mean, some
from ldl.tables.entries import MISSING, NUMBER, spelling
from ldl.tables.roles import plain_name

Duplicates = Literal["error", "first", "last", "keep"]
Multiple = Literal["error", "count"]
SEPARATORS = ";|,"
"""Characters between several labels in one vote."""
PLAIN_SEPARATORS = ";|"
"""Those that few labels contain."""
HEADING_ROWS = 3
"""First rows of a table in which exports of surveys explain the header."""


def answers_of(
    cells: Sequence[Any],
    order: Sequence[Any],
    no_vote: Sequence[str],
    multiple: Multiple,
    source: str,
    notes: list[str],
) -> list[tuple[str, ...]]:
    """Return the labels of each cell, in their spelling, none for a gap; ``notes`` is extended.

    Args:
        cells: Cells with votes.
        order: All labels, of which none is a gap or several labels; or nothing.
        no_vote: Spellings of answers that are no votes.
        multiple: Whether several labels in a cell are an error.
        source: Name of the table, for messages.
        notes: Receives lines about what was left out.

    Raises:
        LDLError: A cell holds several labels, or something else than labels.
    """
    labels = {spelling(label, numeral=True) for label in order}
    cache: dict[str, tuple[str, ...]] = {}
    answers = []
    for cell in cells:
        if type(cell) is str:
            answers.append(cache[cell] if cell in cache else cache.setdefault(cell, _labels(cell, labels, source)))
        else:
            answers.append(_labels(cell, labels, source))
    votes = Counter(answers)
    shown = {answer: _pieces(answer, votes, labels, multiple) for answer in votes}
    if several := {answer for answer, pieces in shown.items() if len(pieces) > 1}:
        first = next(answer for answer in answers if answer in several)
        if multiple == "error":
            raise LDLError(
                f"{source}: {sum(votes[answer] for answer in several)} votes hold several labels, the first is "
                f"{_text(first)!r}; pass multiple count to count each label, or list it in order if it is one label"
            )
        notes.append(f"{source}: {sum(votes[answer] for answer in several)} votes hold several labels, and each counts")
    elif cut := [answer[0] for answer in votes if len(answer) == 1 and answer[0] not in labels and _is_cut(answer[0])]:
        notes.append(
            f"{source}: {some(cut, 3)} and such are read as one label each; if a vote holds several labels, pass "
            "multiple count"
        )
    final, words, dropped = {}, Counter[str](), Counter[str]()
    for answer, pieces in shown.items():
        gaps = [label for label in pieces if label.lower() in MISSING and label not in labels]
        excluded = [label for label in pieces if label in no_vote]
        for label in gaps:
            words[label] += votes[answer]
        for label in excluded:
            dropped[label] += votes[answer]
        final[answer] = tuple(label for label in pieces if label not in gaps and label not in excluded)
    notes += unused(no_vote, [label for pieces in shown.values() for label in pieces], "no_vote", source)
    if dropped:
        counts = ", ".join(f"{label!r} ({count})" for label, count in dropped.items())
        notes.append(f"{source}: the answers {counts} are no votes and left out")
    named = {label for pieces in final.values() for label in pieces}
    if (spelled := [label for label in words if label and label not in no_vote]) and not all(
        map(NUMBER.fullmatch, named)
    ):
        counts = ", ".join(f"{label!r} ({words[label]})" for label in spelled)
        notes.append(
            f"{source}: the entries {counts} are read as gaps; if one is a label, list all labels in order, with "
            "label_type nominal for classes"
        )
    return [final[answer] for answer in answers]


def heading_rows(table: pd.DataFrame, columns: VoteColumns, source: str, listed: bool = False) -> np.ndarray:
    """Return the rows (N,) that repeat or explain the header, which are no votes.

    Exports of surveys have the text of each question in a second row, and identifiers in JSON in a third row.
    Raises LDLError if the first row looks like a row of questions, unless labels are ``listed``.
    """
    is_heading = np.zeros(len(table), bool)
    texts = [column for column in table if table[column].dtype.kind == "O"]
    if not (texts and len(table)):
        return is_heading
    named = [column for column in columns.all if column not in columns.beside]
    if columns.item in texts and len(named) > 1:
        items = table[columns.item].to_numpy(object)
        for row in [row for row, cell in enumerate(items) if isinstance(cell, str) and cell.strip() == columns.item]:
            is_heading[row] = all(_is_name(cell, column) for column, cell in table[named].iloc[row].items())
    head = [[str(cell) for cell in row] for row in table[texts].head(HEADING_ROWS).to_numpy(object)]
    for row, cells in enumerate(head):
        if any(cell.strip().startswith('{"ImportId"') for cell in cells):
            is_heading[: row + 1] = True
    rest = [(column, cell) for column, cell in zip(texts, head[0]) if column not in (*columns.raters, *columns.labels)]
    is_heading[0] |= sum(_is_name(cell, column) for column, cell in rest) > 1
    if columns.layout != "counts" and not is_heading[0] and not listed:
        _check_first_row(table, columns, source)
    return is_heading


def _is_name(cell: Any, column: Any) -> bool:
    """Return whether a cell is the name of its column, perhaps in other words, such as ``Start Date``."""
    return isinstance(cell, str) and bool(plain_name(cell)) and plain_name(cell) == plain_name(column)


def _check_first_row(table: pd.DataFrame, columns: VoteColumns, source: str) -> None:
    """Raise LDLError if the first row has other text than all rows below, where every entry recurs."""
    cells = [list(columns.raters)] if columns.raters else [[name] for name in (columns.rater, columns.vote) if name]
    first = []
    for names in cells:
        texts = [cell.strip() for cell in table[names].iloc[0] if isinstance(cell, str)]
        if len(set(texts)) < len(names) or any(not text or NUMBER.fullmatch(text) for text in texts):
            return
        below = Counter(str(cell).strip() for name in names for cell in table[name].iloc[1:].dropna())
        if set(texts) & set(below) or min(below.values(), default=0) < 2:
            return
        first += texts
    if len(first) > 1 and len(table) > HEADING_ROWS:
        raise LDLError(
            f"{source}: the first row has answers that no other row has, {some(first, 3)}, like a second header of a "
            "survey; remove it, or list all labels in order"
        )


def check_choice(option: str, value: Any, choices: Any) -> None:
    """Raise LDLError unless an option has one of the values of a ``Literal``."""
    if value not in get_args(choices):
        raise LDLError(
            f"unknown {option} {value!r}; one of {get_args(choices)}{did_you_mean(str(value), get_args(choices))}"
        )


def _labels(cell: Any, labels: set[str], source: str) -> tuple[str, ...]:
    """Return the labels in a cell. Text that is one of ``labels`` is no list."""
    if isinstance(cell, str) and (text := cell.strip()) not in labels and text[:1] + text[-1:] == "[]":
        cell = _parsed(cell)
    if isinstance(cell, dict):
        raise LDLError(f"{source}: the vote {str(cell)[:80]!r} is no label; give text, a number or a list of them")
    if isinstance(cell, set | frozenset):
        cell = sorted(cell, key=str)
    if isinstance(cell, list | tuple | np.ndarray):
        return tuple(spelling(entry, numeral=True) for entry in np.ravel(np.array(cell, object)))
    return (spelling(cell, numeral=True),)


def _parsed(text: str) -> Any:
    """Return the list that text spells in JSON or Python, else the text."""
    for parse in (json.loads, ast.literal_eval):
        try:
            entries = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(entries, list) and all(isinstance(entry, str | int | float | bool) for entry in entries):
            return entries
    return text


def _pieces(
    answer: tuple[str, ...], votes: Counter[tuple[str, ...]], labels: set[str], multiple: Multiple
) -> tuple[str, ...]:
    """Return the labels of an answer: text is cut if each piece is a label of other votes, or several are expected."""
    if len(answer) != 1 or answer[0] in labels:
        return answer
    for mark in SEPARATORS:
        pieces = tuple(spelling(piece, numeral=True) for piece in answer[0].split(mark))
        if len(pieces) > 1:
            if multiple == "count" and mark in PLAIN_SEPARATORS:
                return tuple(filter(None, pieces))
            if all((piece,) in votes or piece in labels for piece in pieces):
                return pieces
    return answer


def _is_cut(text: str) -> bool:
    return any(mark in text for mark in PLAIN_SEPARATORS)


def _text(answer: tuple[str, ...]) -> str:
    return answer[0] if len(answer) == 1 else str(list(answer))
