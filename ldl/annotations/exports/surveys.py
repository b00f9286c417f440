"""Surveys, with a row a rater and a column an item: Qualtrics and Google Forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from os.path import commonprefix

import numpy as np
import pandas as pd

from ldl.annotations.exports.crowds import table_of
from ldl.annotations.exports.responses import RATER, ExportOptions, Responses, choose_question, reasons_of
from ldl.annotations.exports.tool_files import ToolFile
from ldl.errors import LDLError

NUMBERED = re.compile(r"(?P<question>.+?)_(?P<item>\d+)|(?P<loop>\d+)_(?P<looped>.+)")
"""Names of the columns of a matrix question of Qualtrics, such as ``Q1_2``, and of a loop, such as ``2_Q1``."""
IN_BRACKETS = re.compile(r"(?P<question>.*\S)?\s*\[(?P<item>.+)\]")
"""Header of a row of a grid of Google Forms, such as ``Rate the film [Film A]``."""
NAMES_OF_RATERS = ("Email Address", "Username", "Email address")
"""Headers of Google Forms for the address of a respondent."""


def qualtrics(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read Qualtrics: below the header, a row of texts and a row of identifiers in JSON."""
    texts: dict[str, str] = {}
    tables = []
    for file in files:
        assert file.table is not None
        heads = np.flatnonzero(file.table.head(3).apply(lambda row: row.str.startswith('{"ImportId"').any(), axis=1))
        first = int(heads[0]) + 1 if len(heads) else 0
        if first > 1:
            texts |= dict(file.table.iloc[0])
        tables.append(ToolFile(file.name, file.stem, file.table.iloc[first:]))
    table = table_of(tables)
    groups: dict[str, list[str]] = {}
    for name in table:
        if match := NUMBERED.fullmatch(name):
            groups.setdefault(match["question"] or match["looped"], []).append(name)
    groups = {question: names for question, names in groups.items() if len(names) > 1}
    question, names = _columns(groups, table, options, files[0].name)
    shown = _without_common([texts.get(name, "") for name in names])
    status = table["Status"].str.lower() if "Status" in table else pd.Series([""] * len(table))
    finished = table["Finished"].str.lower() if "Finished" in table else pd.Series(["true"] * len(table))
    reasons = reasons_of(
        len(table),
        preview=status.isin(("survey preview", "1", "survey test", "2")).to_numpy(),
        spam=status.isin(("spam", "8")).to_numpy(),
        unfinished=finished.isin(("false", "0")).to_numpy(),
    )
    raters = list(table["ResponseId"])
    return _melted(table, question, names, names, raters, reasons, "ResponseId", shown)


def google_forms(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read Google Forms, or another survey with a row a rater: the header holds each item in brackets."""
    table = table_of(files)
    groups: dict[str, list[str]] = {}
    for name in table:
        if match := IN_BRACKETS.fullmatch(name):
            groups.setdefault(match["question"] or "", []).append(name)
    question, names = _columns(groups, table, options, files[0].name)
    items = [match["item"] if (match := IN_BRACKETS.fullmatch(name)) else name for name in names]
    address = next((name for name in NAMES_OF_RATERS if name in table), None)
    rater = address if options.rater_column in (None, RATER) else options.rater_column
    if rater is not None and rater not in table:
        raise LDLError(f"{files[0].name} has no column {rater!r}; correct rater_column")
    addresses = list(table[rater]) if rater else [""] * len(table)
    raters = [name or f"row {row}" for row, name in enumerate(addresses, 1)]
    return _melted(table, question, names, items, raters, [""] * len(table), rater or "by its row")


def _columns(
    groups: dict[str, list[str]], table: pd.DataFrame, options: ExportOptions, source: str
) -> tuple[str, list[str]]:
    """Return the question and its columns: of the only group, or those that ``vote_column`` names or matches."""
    wanted = options.vote_column
    matching = [name for name in table if wanted is not None and (name == wanted or fnmatchcase(name, wanted))]
    if wanted not in groups and matching:
        return str(wanted), matching
    if not groups:
        raise LDLError(
            f"{source} has no columns of one question with its items, such as Q1_1 and Q1_2 or 'Rate [A]' and "
            "'Rate [B]'; name them by a pattern, vote_column 'Film *'"
        )
    question = choose_question(groups, options, source)
    return question, groups[question]


def _without_common(texts: Iterable[str]) -> list[str]:
    """Return texts of questions without their common beginning up to a hyphen, which is the question itself."""
    texts = list(texts)
    end = commonprefix(texts).rfind(" - ")
    return [text[end + 3 :] if end >= 0 else text for text in texts]


def _melted(
    table: pd.DataFrame,
    question: str,
    names: list[str],
    items: list[str],
    raters: list[str],
    reasons: Sequence[str],
    rater: str,
    texts: Sequence[str] = (),
) -> Responses:
    """Return the responses in columns ``names`` of a table with a row a rater."""
    rows = len(table)
    columns = pd.DataFrame({"text": np.repeat(list(texts), rows)} if any(texts) else {}, index=range(rows * len(names)))
    return Responses(
        question,
        list(np.repeat(np.array(items, object), rows)),
        raters * len(names),
        [cell for name in names for cell in table[name]],
        columns,
        list(reasons) * len(names),
        "by its column",
        rater,
    )
