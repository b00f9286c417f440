"""Exports of Zooniverse: classifications, and the reductions of ``panoptes_aggregation`` and Caesar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ldl.annotations.exports.crowds import columns_behind, table_of
from ldl.annotations.exports.json_exports import plain_columns
from ldl.annotations.exports.responses import (
    OTHER_VERSION,
    ExportOptions,
    Responses,
    choose_question,
    is_true,
    reasons_of,
)
from ldl.annotations.exports.tool_files import ToolFile
from ldl.errors import LDLError, some

IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]*)[^)]*\)")
"""An image in Markdown: its text, and its address."""
NO_COUNTS = ("aggregation_version",)
"""Columns of a reduction that count no votes, without their prefix."""


def classifications(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read classifications: a row a volunteer and subject, with the answers to all tasks in JSON."""
    table = table_of(files)
    source = files[0].name
    several = table["workflow_id"].nunique() > 1
    answers: list[tuple[int, str, Any]] = []
    for row, (cell, workflow) in enumerate(zip(table["annotations"], table["workflow_id"])):
        for task, answer in _tasks(cell, f"{source}: row {row}"):
            answers.append((row, f"{workflow}.{task}" if several else task, answer))
    drawn = {task for _, task, answer in answers if _is_drawn(answer)}
    question = choose_question([task for _, task, _ in answers if task not in drawn], options, source)
    workflow = question.partition(".")[0]
    size = int((table["workflow_id"] == workflow).sum()) if several else len(table)
    answers = [(row, task, answer) for row, task, answer in answers if task == question]
    rows = [row for row, _, _ in answers]
    chosen = table.iloc[rows].reset_index(drop=True)
    is_other, notes = _other_versions(chosen["workflow_version"], options.workflow_version, source)
    if missing := size - len(set(rows)):
        notes.append(f"{source}: {missing} classifications have no task {question} and are left out")
    cells = [_plain(answer) for _, _, answer in answers]
    if images := sum(cell != answer for cell, (_, _, answer) in zip(cells, answers)):
        notes.append(f"{source}: {images} answers hold images in Markdown, which are no part of the label")
    gold = is_true(chosen["gold_standard"]) if "gold_standard" in chosen else np.zeros(len(chosen), bool)
    reasons = reasons_of(len(chosen), **{OTHER_VERSION: is_other}, gold=gold)
    subjects = [_subject(cell) for cell in chosen.get("subject_data", [""] * len(chosen))]
    return Responses(
        question,
        list(chosen["subject_ids"]),
        list(chosen["user_name"]),
        cells,
        plain_columns(subjects, ("retired",)),
        reasons,
        "subject_ids",
        "user_name",
        notes=notes,
    )


def _tasks(cell: str, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the tasks in a cell of annotations with their answers, also the parts of combined tasks."""
    try:
        tasks = json.loads(cell)
    except ValueError as error:
        raise LDLError(f"{place}: the annotations are no JSON: {error}; export the classifications again") from None
    while tasks:
        task = tasks.pop(0)
        if isinstance(task.get("value"), list) and any(isinstance(v, dict) and "task" in v for v in task["value"]):
            tasks += task["value"]
        elif "task" in task:
            yield task["task"], task.get("value")


def _is_drawn(answer: Any) -> bool:
    """Return whether an answer is made of marks on an image, which are no labels."""
    return isinstance(answer, list) and any(isinstance(each, dict) and "choice" not in each for each in answer)


def _plain(answer: Any) -> Any:
    """Return an answer without images in Markdown; the text of an image, or its address, if there is nothing else."""
    if isinstance(answer, list):
        return [_plain(each) for each in answer]
    if not isinstance(answer, str) or not (image := IMAGE.search(answer)):
        return answer
    return " ".join(IMAGE.sub(" ", answer).split()) or image[1].strip() or image[2]


def _other_versions(versions: pd.Series, wanted: str, source: str) -> tuple[np.ndarray, list[str]]:
    """Return whether each response is of another version than ``wanted`` (V,), and a note. Raises LDLError."""
    names = sorted(set(versions), key=lambda name: [int(part) for part in re.findall(r"\d+", name)])
    if wanted == "all" or not names:
        return np.zeros(len(versions), bool), []
    version = names[-1] if wanted == "latest" else wanted
    if version not in names:
        raise LDLError(f"{source} has no workflow_version {wanted!r}; it has {some(names)}, or pass latest or all")
    if len(names) == 1:
        return np.zeros(len(versions), bool), []
    note = f"{source}: of the versions {some(names)} of the workflow, {version} is taken"
    return (versions != version).to_numpy(), [f"{note}; ldl votes --workflow_version decides"]


def _subject(cell: str) -> dict[str, Any]:
    """Return what a cell says about its subject."""
    try:
        subjects = json.loads(cell)
    except ValueError:
        return {}
    return next((each for each in subjects.values() if isinstance(each, dict)), {})


def reductions(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read reductions: a row a subject and task, with a column ``data.LABEL`` of votes for each label."""
    table = table_of(files)
    source = files[0].name
    names = [name for name in ("workflow_id", "task", "reducer_key") if name in table]
    names = [name for name in names if table[name].nunique() > 1] or names[-1:]
    questions = table[names].agg(".".join, axis=1)
    question = choose_question(questions, options, source)
    table = table[questions == question].reset_index(drop=True)
    data = columns_behind(table, "data.").drop(columns=list(NO_COUNTS), errors="ignore")
    data = data.loc[:, (data != "").any()]
    counts = data.apply(pd.to_numeric, errors="coerce").convert_dtypes()
    if wrong := [name for name in data if (counts[name].isna() & (data[name] != "")).any()]:
        raise LDLError(
            f"{source}: data.{wrong[0]} holds {data[wrong[0]][data[wrong[0]] != ''].iloc[0]!r} and no counts of votes; "
            "give the reductions of a question reducer"
        )
    notes = []
    if others := [name for name in counts if name == "None"]:
        empty = int(counts[others[0]].sum())
        notes.append(f"{source}: {empty} classifications without an answer, data.None, are left out")
        counts = counts.drop(columns=others)
    return Responses(
        question,
        list(table["subject_id"]),
        None,
        [""] * len(table),
        pd.DataFrame(index=table.index),
        item="subject_id",
        counts=counts,
        notes=notes,
    )
