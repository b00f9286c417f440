"""Features that repeat the labels of a table, such as the most frequent label or the mean vote."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ldl.data.names import as_number
from ldl.labels import LabelSpace
from ldl.tables.entries import as_text
from ldl.tables.roles import USUAL, plain_name

ROUNDING = 0.0051
"""Largest difference of a mean vote that is rounded to two decimals."""
FIRST_ROWS = 32
"""Rows that are compared first."""
TIE = 1e-6
"""Largest difference of equal shares."""


def label_copies(
    features: Any,
    columns: Sequence[str],
    labels: LabelSpace,
    target: np.ndarray,
    named: Collection[str],
    votes: np.ndarray | None = None,
) -> list[str]:
    """Return the columns of features that repeat the labels, so that a model would not have to learn them.

    These are categories whose entries are all names of labels; columns that are named like a rater or a vote, such as
    ``rater_1``, with names, values or numbers of labels; the most frequent label of each row as a number; and, beside
    ordinal labels, their mean, median and standard deviation in each row.

    Args:
        features: (N, F) matrix, or a typed frame (``ldl.data.tables.columns``).
        columns: Names of the features.
        labels: The labels.
        target: (N, C) distributions.
        named: Columns that are features because an option names them.
        votes: (N,) number of votes, or None if unknown.
    """
    frame = features if isinstance(features, pd.DataFrame) else pd.DataFrame(features, columns=list(columns))
    names, values = set(map(str, labels.names)), labels.axes[0] if labels.kind == "ordinal" else ()
    numbers = {*values, *range(len(labels)), *map(as_number, names)}
    numerals = [as_number(str(name)) for name in labels.names]
    codings = [
        np.array(codes, float) for codes in (values, range(len(labels)), numerals) if len(codes) and None not in codes
    ]
    summaries = _summaries(np.array(values), target, votes) if values else []
    copies = []
    for name, column in frame.items():
        if name in named:
            continue
        if column.dtype.kind == "f":
            entries = column.to_numpy()
            first = slice(FIRST_ROWS)  # most columns differ there, and wide tables have many
            repeats = _repeats(entries[first], codings, [each[first] for each in summaries], target[first])
            repeats = repeats and _repeats(entries, codings, summaries, target)
            if repeats or _is_of_votes(str(name)):
                distinct = set(column.dropna().unique())
                repeats = len(distinct) > 1 and (repeats or distinct <= numbers)
        else:
            texts = set(map(as_text, column.dropna().unique())) - {""}
            repeats = len(texts) > 1 and texts <= names
        if repeats:
            copies.append(str(name))
    return copies


def _repeats(
    column: np.ndarray, codings: Sequence[np.ndarray], summaries: Sequence[np.ndarray], target: np.ndarray
) -> bool:
    """Return whether a column (N,) is the most frequent label of each row, or a summary of its labels."""
    near = (np.allclose(column, summary, 0, ROUNDING, equal_nan=True) for summary in summaries)
    return any(near) or any(_is_most_frequent(column, codes, target) for codes in codings)


def _is_of_votes(name: str) -> bool:
    """Return whether the first word of a name is a usual name of raters or votes."""
    return re.split("[_0-9]", plain_name(name))[0] in {*USUAL["rater"], *USUAL["vote"]}


def _is_most_frequent(column: np.ndarray, codes: np.ndarray, target: np.ndarray) -> bool:
    """Return whether each entry (N,) is the code of a label that no other of its row exceeds."""
    share = np.zeros(len(column))
    for code, shares in zip(codes, target.T):
        share = np.where(column == code, shares, share)
    return bool((share >= target.max(1) - TIE).all())


def _summaries(values: np.ndarray, target: np.ndarray, votes: np.ndarray | None) -> list[np.ndarray]:
    """Return the mean, the median and the standard deviations (N,) of the values of labels, with gaps for one vote."""
    mean, total = target @ values, np.cumsum(target, 1)
    low, high = (values[(total < level).sum(1).clip(max=len(values) - 1)] for level in (0.5 - TIE, 0.5 + TIE))
    deviation = np.sqrt(np.maximum(target @ values**2 - mean**2, 0))
    summaries = [mean, (low + high) / 2, deviation]
    if votes is None:
        return summaries
    with np.errstate(divide="ignore", invalid="ignore"):
        return [*summaries, deviation * np.sqrt(votes / np.where(votes > 1, votes - 1, np.nan))]
