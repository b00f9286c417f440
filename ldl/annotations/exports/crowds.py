"""Tables of crowdsourcing platforms: Mechanical Turk, Appen (Figure Eight) and Toloka."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ldl.annotations.exports.responses import (
    ExportOptions,
    Responses,
    answer_columns,
    choose_question,
    find_name,
    is_filled,
    is_true,
    reasons_of,
    texts_of,
)
from ldl.annotations.exports.tool_files import ToolFile
from ldl.errors import LDLError

OF_APPEN = re.compile("^_|^orig_|_gold(_reason)?$")
"""Columns that Appen adds to the questions and the data of a unit."""
TRUTHS = {"", "true", "false"}


def table_of(files: Sequence[ToolFile]) -> pd.DataFrame:
    """Return the rows of all files with a cell in some column, as text without blanks around it."""
    table = pd.concat([file.table for file in files], ignore_index=True).fillna("")
    table = table.apply(lambda column: column.str.strip())
    return table[(table != "").any(axis=1)].reset_index(drop=True)


def columns_behind(table: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """Return the columns whose names begin with a prefix, without it."""
    names = [name for name in table if name.startswith(prefix)]
    return table[names].rename(columns=lambda name: name.removeprefix(prefix))


def mechanical_turk(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read batch results of Mechanical Turk: a row an assignment, with ``Input.*`` and ``Answer.*``."""
    table = _with_task_answers(table_of(files))
    questions = _grouped([name for name in table if name.startswith("Answer.")], table)
    question = choose_question(questions, options, files[0].name)
    columns = columns_behind(table, "Input.")
    item = f"Input.{columns.columns[0]}" if columns.shape[1] == 1 else "HITId"
    return Responses(
        question,
        list(table[item]),
        list(table["WorkerId"]),
        _choices(table, question, questions[question]),
        columns if item == "HITId" else columns.assign(HITId=table["HITId"]),
        reasons_of(len(table), rejected=(table["AssignmentStatus"].str.lower() == "rejected").to_numpy()),
        item,
        "WorkerId",
    )


def _with_task_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the answers that ``Answer.taskAnswers`` holds in JSON as columns."""
    if (name := "Answer.taskAnswers") not in table:
        return table
    try:
        answers = [json.loads(cell)[0] if cell else {} for cell in table[name]]
        flat = pd.json_normalize(answers).astype(object)
    except (ValueError, KeyError, IndexError, NotImplementedError):
        return table
    flat = flat.where(flat.notna(), "").astype(str).add_prefix("Answer.")
    return pd.concat([table.drop(columns=name), flat], axis=1)


def _grouped(columns: Sequence[str], table: pd.DataFrame) -> dict[str, list[str]]:
    """Return the columns of each question: one, or one for each label with true and false."""
    groups: dict[str, list[str]] = {}
    for name in columns:
        is_choice = set(table[name].str.lower()) <= TRUTHS and name.count(".") > 1
        groups.setdefault(name.rpartition(".")[0] if is_choice else name, []).append(name)
    return groups


def _choices(table: pd.DataFrame, question: str, columns: list[str]) -> list[Any]:
    """Return the answers to a question, of a column for each label those that are true."""
    if columns == [question]:
        return [re.split(r"\s*\|\s*", cell) if "|" in cell else cell for cell in table[question]]
    labels = [name.removeprefix(f"{question}.") for name in columns]
    chosen = np.stack([is_true(table[name]) for name in columns], 1)
    return [[label for label, is_chosen in zip(labels, row) if is_chosen] for row in chosen]


def appen(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read the full report of Appen, formerly Figure Eight and CrowdFlower: a row a judgment."""
    table = table_of(files)
    others = [name for name in table if not OF_APPEN.search(name)]
    questions = others
    if find_name(options.vote_column, others) is None:
        questions = [name for name in others if f"{name}_gold" in table] or answer_columns(
            table, table["_unit_id"], others
        )
    question = choose_question(questions, options, files[0].name)
    gold = is_true(table["_golden"]) if "_golden" in table else np.zeros(len(table), bool)
    tainted = is_true(table["_tainted"]) if "_tainted" in table else np.zeros(len(table), bool)
    return Responses(
        question,
        list(table["_unit_id"]),
        list(table["_worker_id"]),
        [cell.splitlines() if "\n" in cell else cell for cell in table[question]],
        table[[name for name in others if name != question]],
        reasons_of(len(table), gold=gold, tainted=tainted),
        "_unit_id",
        "_worker_id",
    )


def appen_aggregated(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Raise LDLError: the aggregated report of Appen has no distribution."""
    raise LDLError(
        f"{files[0].name} is an aggregated report of Appen, which has the most frequent answer with its confidence and "
        "no distribution; download the full report, which has a row a judgment"
    )


def toloka(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read assignments of Toloka: a row a task of an assignment, with ``INPUT:*`` and ``OUTPUT:*``."""
    table = table_of(files)
    outputs = [name for name in table if name.startswith("OUTPUT:") and is_filled(table[name]).any()]
    question = choose_question(outputs, options, files[0].name)
    columns = columns_behind(table, "INPUT:")
    items, item = None, "to be named"
    if columns.shape[1] == 1:
        items, item = list(columns.iloc[:, 0]), f"INPUT:{columns.columns[0]}"
    elif (name := find_name("task_id", table)) is not None:
        items, item = list(table[name]), name
    golden = [name for name in table if name.startswith("GOLDEN:")]
    status = table["ASSIGNMENT:status"].str.upper()
    return Responses(
        question,
        items,
        texts_of(table["ASSIGNMENT:worker_id"]),
        list(table[question]),
        columns,
        reasons_of(
            len(table),
            gold=np.any([is_filled(table[name]) for name in golden], axis=0) if golden else np.zeros(len(table), bool),
            rejected=(status == "REJECTED").to_numpy(),
            skipped=status.isin(("SKIPPED", "EXPIRED", "ACTIVE")).to_numpy(),
        ),
        item,
        "ASSIGNMENT:worker_id",
    )
