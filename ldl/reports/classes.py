"""What a run reports of each class of nominal labels: ``classes.csv`` and ``confusion.csv``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from pytorch_lightning.utilities import rank_zero_warn

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.metrics.classes import class_results, confusion_matrix
from ldl.reports.files import write_table


def write_classes(folder: Path, rows: dict[str, np.ndarray], labels: LabelSpace, quote: bool = False) -> None:
    """Write the results of each class of test rows, if they have nominal labels; see :mod:`ldl.metrics.classes`.

    ``classes.csv`` has a row for each label with its ``precision``, ``recall``, ``f1`` and ``support``; an undefined
    result is an empty field. ``confusion.csv`` has a row for each true label and a column ``prediction:NAME`` for each
    predicted one.

    Args:
        folder: The run directory.
        rows: ``prediction`` and ``target`` (n, C), and ``weight`` (n,) if rows do not count equally.
        labels: The label space.
        quote: Write names that spreadsheet programs read as formulas with an apostrophe before them.
    """
    if labels.kind != "nominal" or "target" not in rows:
        return
    columns, names = (rows["prediction"], rows["target"], rows.get("weight")), list(labels.names)
    try:
        write_table(folder / "classes.csv", pd.DataFrame({"label": names, **class_results(*columns)}), quote)
        counted = pd.DataFrame(confusion_matrix(*columns), columns=[f"prediction:{name}" for name in names])
        counted.insert(0, "target", names)
        write_table(folder / "confusion.csv", counted, quote)
    except LDLError as error:
        rank_zero_warn(f"the confusion matrix is left out: {error}")
