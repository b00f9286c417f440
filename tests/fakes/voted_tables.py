"""Small tables with features, whose labels are votes, distributions or values in every layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ldl.data import TabularLDL, TabularValues
from ldl.data.tables.module import GroupedRows

RNG = np.random.default_rng(0)
ROWS = 40
X = RNG.normal(size=(ROWS, 2)).round(3)
VOTES = RNG.integers(1, 4, (ROWS, 3))
ITEMS = [f"n{row}" for row in range(ROWS)]
FEATURES = pd.DataFrame(X, columns=["a", "b"])
COUNTS = pd.DataFrame({f"label:{label}": (label == VOTES).sum(1) for label in (1, 2, 3)})
MATRIX = pd.DataFrame(VOTES, columns=["vote_ann", "vote_bob", "vote_cat"])
LONG = (
    MATRIX.rename(columns=lambda name: name.removeprefix("vote_"))
    .assign(item=ITEMS)
    .melt("item", var_name="rater", value_name="label")
)
KINDS = {
    "counts": (COUNTS, TabularLDL, {}),
    "distributions": (COUNTS / 3, TabularLDL, {}),
    "matrix": (MATRIX, TabularLDL, {"rater_columns": "vote_*"}),
    "values": (pd.DataFrame({"value": VOTES[:, 0] + X[:, 0]}), TabularValues, {}),
}
SETS = ["train"] * 20 + ["validation"] * 8 + ["TEST"] * 12


def opened(path: Path, table: pd.DataFrame, kind: type[GroupedRows] = TabularLDL, **options: Any) -> Any:
    """Write a table, and return the data module that reads it."""
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    data = kind(path=str(path), folds=4, val_fraction=0.0, **options)
    data.setup()
    return data


def shares_of(data: Any) -> np.ndarray:
    return np.asarray(data.columns["target"].numpy())
