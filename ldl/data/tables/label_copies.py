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


def label_copies(
    features: Any, columns: Sequence[str], labels: LabelSpace, target: np.ndarray, named: Collection[str]
) -> list[str]:
    """Return the columns of features that repeat the labels, so that a model would not have to learn them.

    These are categories whose entries are all names of labels; columns that are named like a rater or a vote, such as
    ``rater_1``, with names, values or numbers of labels; and, beside ordinal labels, the mean label of each row.

    Args:
        features: (N, F) matrix, or a typed frame (``ldl.data.tables.columns``).
        columns: Names of the features.
        labels: The labels.
        target: (N, C) distributions.
        named: Columns that are features because an option names them.
    """
    frame = features if isinstance(features, pd.DataFrame) else pd.DataFrame(features, columns=list(columns))
    names, values = set(map(str, labels.names)), labels.axes[0] if labels.kind == "ordinal" else ()
    numbers = {*values, *range(len(labels)), *map(as_number, names)}
    mean = target @ np.array(values) if values else None
    copies = []
    for name, column in frame.items():
        if name in named:
            continue
        if column.dtype.kind == "f":
            repeats = mean is not None and bool((np.abs(column - mean) <= ROUNDING).all())
            if repeats or _is_of_votes(str(name)):
                entries = set(column.dropna().unique())
                repeats = len(entries) > 1 and (repeats or entries <= numbers)
        else:
            texts = set(map(as_text, column.dropna().unique())) - {""}
            repeats = len(texts) > 1 and texts <= names
        if repeats:
            copies.append(str(name))
    return copies


def _is_of_votes(name: str) -> bool:
    """Return whether the first word of a name is a usual name of raters or votes."""
    return re.split("[_0-9]", plain_name(name))[0] in {*USUAL["rater"], *USUAL["vote"]}
