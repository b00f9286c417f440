"""Arguments of ``fit`` and ``predict`` as arrays, held against what scikit-learn asks of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d

from ldl.errors import LDLError

NO_GROUP = ("None", "nan", "NaT", "<NA>")
"""How Python, numpy and pandas write that nothing is known."""


def read_features(estimator: BaseEstimator, X: Any, missing: bool) -> np.ndarray:
    """Features (N, F) of rows to predict. Raises ValueError for other columns than it was fitted on, or NaN."""
    return _validate(estimator, X, missing, reset=False)


def read_rows(estimator: BaseEstimator, X: Any, y: Any, missing: bool) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, F) and targets, (N, C) or (N,), to fit, float64; the estimator gets number and names of columns.

    Raises ValueError: shapes that do not fit, text, NaN (in features unless ``missing``), or a sparse matrix.
    """
    if y is not None:
        _refuse_classes(y)
    rows, target = _validate(estimator, X, missing, y=y, multi_output=True, y_numeric=True)
    target = check_array(target, dtype=np.float64, ensure_2d=False, input_name="y")
    if target.ndim > 2:
        raise LDLError(f"y has shape {target.shape}; distributions are (N, C), and values (N,)")
    return rows, target


def read_groups(groups: Any, X: np.ndarray) -> np.ndarray | None:
    """A group a row, of any type that sorts, or None. Raises ValueError: another length, or a row of no group."""
    if groups is None:
        return None
    check_consistent_length(X, groups)
    groups = column_or_1d(groups)
    for row, group in enumerate(groups):
        if not isinstance(group, str) and str(group) in NO_GROUP:
            raise LDLError(f"groups: row {row} has no group, but {group}; give every row one")
    return groups


def draw_seed(random_state: Any) -> int:
    """The seed that an integer is, or one that a generator draws; None takes that of numpy."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _validate(estimator: BaseEstimator, X: Any, missing: bool, **options: Any) -> Any:
    finite: Any = "allow-nan" if missing else True
    options["dtype"] = np.float64
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before scikit-learn 1.6
        return estimator._validate_data(X, force_all_finite=finite, **options)
    return validate_data(estimator, X, ensure_all_finite=finite, **options)


def _refuse_classes(y: Any) -> None:
    """Refuse names and truth values, of which no distribution can be made without asking."""
    array = np.asarray(y)
    names = array.dtype.kind in "USb" or (array.dtype == object and any(isinstance(e, str | bool) for e in array.flat))
    if names and array.size:
        raise LDLError(
            f"y holds class labels such as {str(array.flat[0])!r}; give distributions (N, C), rows of which sum to 1, "
            "as OneHotEncoder makes of classes, or values (N,)"
        )
