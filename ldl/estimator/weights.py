"""Weights of rows: a row of weight k is k equal rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from ldl.errors import LDLError

MOST_ROWS = 10**7
"""That weights may make."""


def read_weights(weight: Any, X: np.ndarray) -> np.ndarray:
    """Numbers of the rows of ``X``, each as often as its weight says, in order.

    Heads know no weights, but any head can be fitted on equal rows; so one rule holds for all.

    Raises ValueError: another number of weights than rows, one that is negative or no whole number, none above 0, or
    too many rows.
    """
    weight = check_array(weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    if weight.shape != (len(X),):
        raise LDLError(f"sample_weight has shape {weight.shape}; give one weight a row, ({len(X)},)")
    if (wrong := (weight < 0) | (weight != np.round(weight))).any():
        row = int(wrong.argmax())
        raise LDLError(
            f"sample_weight of row {row} is {weight[row]:g}; weights must be whole numbers of at least 0, since a row "
            "counts as that many equal rows: multiply and round them, or draw rows by them"
        )
    if not (total := weight.sum()) > 0:
        raise LDLError("sample_weight is zero for every row, which leaves none to fit; give one a weight of 1 or more")
    if total > MOST_ROWS:
        raise LDLError(f"sample_weight makes {total:,.0f} rows, more than {MOST_ROWS:,}; divide all by one number")
    return np.repeat(np.arange(len(X)), weight.astype(np.int64))
