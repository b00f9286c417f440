"""Predictions in the shape in which annotation tools import suggestions, or pre-annotations."""

from __future__ import annotations

from mimetypes import guess_type
from pathlib import Path
from typing import Any

import pandas as pd

from ldl.errors import LDLError, did_you_mean, some
from ldl.tables import CsvTable, Parquet, open_named
from ldl.tables.entries import spelling
from ldl.tables.roles import usual_columns

PREDICTION = "prediction:"
"""Prefix of the columns of ``predictions.csv`` that hold the distribution."""
SHOWN = ("text", "image")
"""Usual columns that annotators see."""
SUGGESTIONS = ("label_studio", "argilla")
"""Tools that import suggestions."""


def suggestions_of(
    predictions: Path, items: Path | None, tool: str, question: str | None = None, shown: str | None = None
) -> list[dict[str, Any]]:
    """Return the likeliest label of each item, with its probability as the score, as a tool imports it.

    Label Studio imports tasks with ``predictions``; Argilla 2 imports records with ``suggestions``, by
    ``dataset.records.from_json``.

    Args:
        predictions: A ``predictions.csv`` of a run.
        items: Table of the items, whose columns become the data of each task; it is joined by the name of each
            prediction, or by ``index``, the number of its row, if predictions have no names. None takes the names.
        tool: One of :data:`SUGGESTIONS`.
        question: Name of the control in Label Studio (``from_name``), or of the question in Argilla; None is ``label``.
        shown: Column that annotators see (``to_name`` in Label Studio, the field in Argilla); None takes ``text`` or
            ``image``.

    Raises:
        LDLError: A file is no table, the predictions are none of a run, or the tables do not join.
    """
    table = _opened(predictions)
    columns = [name for name in table if name.startswith(PREDICTION)]
    if not columns:
        raise LDLError(f"{predictions} has no column {PREDICTION}LABEL; give the predictions.csv of a run")
    shares = table[columns].astype(float).to_numpy()
    labels = [name.removeprefix(PREDICTION) for name in columns]
    tasks = _tasks(table, items, predictions)
    field = _shown(tasks, shown, str(items or predictions))
    agent, asked = f"ldl {predictions.resolve().parent.name}", question or "label"
    likeliest = shares.argmax(1)
    rows = zip(tasks.index, tasks.to_dict("records"), likeliest, shares[range(len(shares)), likeliest])
    written = _label_studio if tool == "label_studio" else _argilla
    return [
        written(str(key), task, labels[label], float(score), (asked, field, agent)) for key, task, label, score in rows
    ]


def _label_studio(
    key: str, task: dict[str, Any], label: str, score: float, names: tuple[str, str, str]
) -> dict[str, Any]:
    """Return a task of Label Studio with a prediction; ``names`` are those of question, field and model."""
    question, field, agent = names
    result = {"from_name": question, "to_name": field, "type": "choices", "value": {"choices": [label]}}
    return {"data": task, "predictions": [{"model_version": agent, "score": score, "result": [result]}]}


def _argilla(key: str, task: dict[str, Any], label: str, score: float, names: tuple[str, str, str]) -> dict[str, Any]:
    """Return a record of Argilla with a suggestion; ``names`` are those of question, field and agent."""
    question, field, agent = names
    return {
        "id": key,
        "fields": {field: task[field]},
        "metadata": {},
        "suggestions": {question: {"value": label, "score": score, "agent": agent}},
        "responses": {},
        "vectors": {},
    }


def _tasks(table: pd.DataFrame, items: Path | None, predictions: Path) -> pd.DataFrame:
    """Return the data of the task of each prediction, indexed by its name. Raises LDLError."""
    named = "name" in table
    keys = [spelling(key) for key in table["name" if named else "index"]]
    if items is None:
        if not named:
            raise LDLError(
                f"{predictions} has no names of items; give the table that was predicted as a second file, such as "
                "items.csv"
            )
        is_image = all((guess_type(key)[0] or "").startswith("image/") for key in keys)
        return pd.DataFrame({"image" if is_image else "text": keys}, index=keys)
    data = _opened(items)
    by_name = {
        column: pd.Index(list(map(spelling, data[column])))
        for column in [*usual_columns(data, "item"), *usual_columns(data, "image")]
    }
    if named:
        joined = [index for index in by_name.values() if index.is_unique and set(keys) <= set(index)]
        if not joined:
            raise LDLError(
                f"{items} has no column with the names of the items, such as {keys[0]!r}; give the table that was "
                "predicted"
            )
        return data.iloc[joined[0].get_indexer(keys)].set_axis(keys)
    rows = [int(key) for key in keys]
    if max(rows) >= len(data):
        raise LDLError(
            f"{items} has {len(data)} rows, and {predictions} is about row {max(rows)}; give the table that was "
            "predicted"
        )
    return data.iloc[rows].set_axis(keys)


def _shown(tasks: pd.DataFrame, shown: str | None, source: str) -> str:
    """Return the column that annotators see. Raises LDLError."""
    usual = [name for name in SHOWN if name in tasks] or usual_columns(tasks, "image")
    field = shown or next(iter(usual), None)
    if field is None or field not in tasks:
        wrong = f" {field!r}{did_you_mean(field, tasks)}" if field else " text or image"
        raise LDLError(f"{source} has no column{wrong}; name what annotators see with item_column: {some(list(tasks))}")
    return field


def _opened(path: Path) -> pd.DataFrame:
    """Return a table as text. Raises LDLError."""
    table: CsvTable | Parquet | None = open_named(path)
    if table is None:
        raise LDLError(f"{path}: unknown kind of file; give a .csv, .tsv or Parquet file")
    return table.texts(table.header)
