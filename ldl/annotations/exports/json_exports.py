"""JSON of Label Studio, Prodigy, doccano and Argilla, and of the shared tasks LeWiDi on disagreement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from ldl.annotations.exports.responses import (
    ExportOptions,
    Responses,
    answer_columns,
    choose_question,
    find_name,
    texts_of,
)
from ldl.annotations.exports.tool_files import FIRST_RECORDS, ToolFile
from ldl.errors import LDLError
from ldl.tables.roles import usual_columns

ANSWERED_BY = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")
"""Keys that Label Studio adds to a task for each annotation."""
TYPES = ("choices", "rating", "number", "taxonomy", "textarea", "pairwise")
"""Types of the answers of Label Studio that are labels of the whole task."""
LABELS = ("hard_label", "soft_label", "number of annotations", "number of annotators", "annotation task")
"""Keys of LeWiDi that follow from the votes, or are the same for all items."""
SHARED = ("all", "unknown")
"""Names of doccano's files with the annotations of several people."""


def records_of(files: Iterable[ToolFile]) -> list[dict[str, Any]]:
    """Return the records of several files."""
    return [record for file in files for record in file.records]


def plain_columns(records: Sequence[dict[str, Any]], without: Sequence[str] = ()) -> pd.DataFrame:
    """Return the entries of records that are text, numbers or truth values, as text, one row a record."""
    kept = [{name: entry for name, entry in record.items() if name not in without} for record in records]
    rows = [{name: str(entry) for name, entry in row.items() if isinstance(entry, str | int | float)} for row in kept]
    return pd.DataFrame(rows, index=range(len(rows))).fillna("")


def label_studio(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read Label Studio's JSON: tasks with their annotations and drafts."""
    tasks, source = records_of(files), files[0].name
    rows = [row for task in tasks for row in _annotations(task)]
    names = [name for _, _, _, results in rows for name in results]
    question = choose_question(names, options, source)
    return Responses(
        question,
        texts_of(task["id"] for task, _, _, _ in rows),
        [rater for _, rater, _, _ in rows],
        [results.get(question) for _, _, _, results in rows],
        plain_columns([task["data"] for task, _, _, _ in rows]),
        [reason for _, _, reason, _ in rows],
        "id",
        "completed_by",
        notes=_without_votes(source, len(tasks), [task["id"] for task, _, _, _ in rows]),
    )


def _without_votes(source: str, size: int, items: Sequence[Any]) -> list[str]:
    """Return a note if ``items``, those that somebody annotated, are fewer than all ``size`` items."""
    missing = size - len(set(items))
    return [f"{source}: {missing} items have no annotation and are left out"] if missing else []


def _annotations(task: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any, str, dict[str, list[Any]]]]:
    """Yield the task with the rater, the reason why it is left out, and the answers by question, of each annotation."""
    answers = [(each, False) for each in task["annotations"]]
    answers += [(each, True) for each in task.get("drafts") or [] if isinstance(each, dict)]
    for annotation, is_draft in answers:
        person = annotation.get("completed_by", annotation.get("user"))
        if isinstance(person, dict):
            person = person.get("email") or person.get("id")
        results: dict[str, list[Any]] = {}
        for result in annotation.get("result") or []:
            if result.get("type") in TYPES:
                results.setdefault(result["from_name"], []).append(result["value"])
        skipped = annotation.get("was_cancelled") or annotation.get("skipped")
        gold = annotation.get("ground_truth")
        reason = "draft" if is_draft else "skipped" if skipped else "gold" if gold else ""
        yield task, person, reason, results


def label_studio_min(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read Label Studio's JSON-MIN or CSV: a row an annotation, with the task's data and the answers."""
    tables = [pd.DataFrame(list(file.records)) if file.table is None else file.table for file in files]
    table = pd.concat(tables, ignore_index=True).astype(object)
    table = table.where(table.notna(), "")
    others = [name for name in table if name not in (*ANSWERED_BY, "id")]
    if find_name(options.vote_column, others) is None:
        others = _between(files) or answer_columns(table, table["id"], others)
    question = choose_question(others, options, files[0].name)
    answers = list(table[question])
    columns = table.drop(columns=[name for name in (*ANSWERED_BY, "id", question) if name in table])
    return Responses(
        question, texts_of(table["id"]), list(table["annotator"]), answers, columns, item="id", rater="annotator"
    )


def _between(files: Sequence[ToolFile]) -> list[str]:
    """Return the keys between ``id`` and ``annotator``, where JSON-MIN has the answers; none of tables."""
    names: dict[str, None] = {}
    for record in records_of(files):
        keys = list(record)
        names |= dict.fromkeys(keys[keys.index("id") + 1 : keys.index("annotator")])
    return list(names)


def prodigy(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read Prodigy's JSONL. Without options, the answer to a label is whether it is accepted."""
    records = records_of(files)
    binary = not any("accept" in record for record in records)
    if binary:
        if not any(isinstance(record.get("label"), str) for record in records):
            raise LDLError(
                f"{files[0].name}: no record has accept, the chosen options, or a label that is accepted or rejected; "
                "spans and texts are no votes"
            )
        question = choose_question([r["label"] for r in records if "label" in r], options, files[0].name)
        records = [record for record in records if record.get("label") == question]
        answers: list[Any] = [record.get("answer", "accept") for record in records]
        reasons = ["ignored" if answer == "ignore" else "" for answer in answers]
    else:
        question = choose_question(["accept"], options, files[0].name)
        answers = [record.get("accept") for record in records]
        words = {"ignore": "ignored", "reject": "rejected"}
        reasons = [words.get(record.get("answer", "accept"), "") for record in records]
    raters = [record.get("_annotator_id") or record.get("_session_id") for record in records]
    columns = plain_columns(records, ("label", "answer", "priority", "score"))
    columns = columns[[name for name in columns if not name.startswith("_")]]
    return Responses(
        question,
        texts_of(record["_input_hash"] for record in records),
        raters if all(raters) else None,
        answers,
        columns,
        reasons,
        "_input_hash",
        "_annotator_id or _session_id" if all(raters) else "unknown",
    )


def doccano(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read doccano's JSONL, a file a rater."""
    records = records_of(files)
    raters = [file.stem for file in files for _ in file.records]
    shared = any(file.stem in SHARED for file in files)
    present = [name for name in ("label", "labels", "cats") if any(name in record for record in records)]
    question = choose_question(present, options, files[0].name)
    answers = [record.get(question) for record in records]
    if any(isinstance(each, list | dict) for answer in answers if isinstance(answer, list) for each in answer):
        raise LDLError(f"{files[0].name}: {question} holds spans or boxes, which are no votes on an item")
    return Responses(
        question,
        texts_of(record["id"] for record in records),
        None if shared else raters,
        answers,
        plain_columns(records, ("id", question)),
        item="id",
        rater="unknown" if shared else "by the name of the file",
    )


def argilla(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read the JSON of Argilla 2: records with the responses to each question."""
    records = records_of(files)
    question = choose_question([name for record in records for name in record["responses"]], options, files[0].name)
    pairs = [(record, response) for record in records for response in record["responses"].get(question) or []]
    notes = _without_votes(files[0].name, len(records), [record["id"] for record, _ in pairs])
    reasons = [status if (status := each.get("status")) in ("draft", "discarded") else "" for _, each in pairs]
    return Responses(
        question,
        texts_of(record["id"] for record, _ in pairs),
        texts_of(response.get("user_id") for _, response in pairs),
        [response.get("value") for _, response in pairs],
        plain_columns([{**(record.get("metadata") or {}), **record["fields"]} for record, _ in pairs]),
        reasons,
        "id",
        "user_id",
        notes=notes,
    )


def lists_labels(file: ToolFile) -> bool:
    """Return whether the records of a file have lists of labels and no rater, as those of doccano."""
    labels = [record.get("label") for record in file.records[:FIRST_RECORDS]]
    return all(isinstance(each, list) for each in labels) and not usual_columns(file.columns, "rater")


def lewidi(files: Sequence[ToolFile], options: ExportOptions) -> Responses:
    """Read the JSON of LeWiDi 2023 or 2025: items by their keys, each with its annotations and annotators."""
    notes = [f"{file.name} holds no annotations and is left out" for file in files if not file.has(["annotations"])]
    files = [file for file in files if file.has(["annotations"])]
    records = records_of(files)
    keys = [record["key"] for record in records]
    if len(set(keys)) < len(keys):
        notes.append(f"{files[0].name}: the files share keys, so an item is the split and the key, such as train-1")
        keys = [f"{record.get('split', file.stem)}-{record['key']}" for file in files for record in file.records]
    rows: list[int] = []
    raters: list[str] = []
    answers: list[Any] = []
    for row, record in enumerate(records):
        names, labels = _lewidi_votes(record, files[0].name)
        rows += [row] * len(names)
        raters += names
        answers += labels
    columns = plain_columns(list(map(_lewidi_columns, records)), ("key", "annotations", "annotators", *LABELS))
    return Responses(
        choose_question(["annotations"], options, files[0].name),
        [keys[row] for row in rows],
        raters,
        answers,
        columns.iloc[rows].reset_index(drop=True),
        item="by its key",
        rater="annotators",
        notes=notes,
    )


def _lewidi_votes(record: dict[str, Any], source: str) -> tuple[list[str], list[Any]]:
    """Return the raters of an item and their answers, each with one label or several. Raises LDLError."""
    annotations = record["annotations"]
    if isinstance(annotations, dict):
        return list(annotations), [_split(answer) for answer in annotations.values()]
    raters = record["annotators"] if isinstance(record["annotators"], list) else _split(record["annotators"])
    answers = annotations if isinstance(annotations, list) else str(annotations).split(",")
    if len(raters) != len(answers) and any(answers):
        raise LDLError(
            f"{source}: item {record['key']!r} has {len(answers)} annotations and {len(raters)} annotators; correct it"
        )
    return raters, answers if len(raters) == len(answers) else [""] * len(raters)


def _split(text: Any) -> list[str]:
    return [part.strip() for part in str(text).split(",") if part.strip()]


def _lewidi_columns(record: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of an item, with those of its text and of ``other_info`` beside them."""
    nested = [record[name] for name in ("other_info", "text") if isinstance(record.get(name), dict)]
    return {**record, **{name: entry for each in nested for name, entry in each.items()}}
