"""Arguments of ``fit`` and ``predict`` as arrays: features, targets, groups and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d

from ldl.data.base import Loaded
from ldl.data.names import label_places, matching
from ldl.data.tables.checks import check_distributions
from ldl.data.tables.column_roles import find_texts
from ldl.data.tables.columns import is_plain, typed
from ldl.data.tables.feature_columns import FeatureColumns
from ldl.data.tables.tabular_values import choose_grid, choose_sigma
from ldl.errors import LDLError
from ldl.labels import LABEL_PREFIX, Encoder, LabelSpace
from ldl.tables.entries import EntryError, as_pandas, column_names, is_frame, is_numbered, to_names, to_numbers

HINTS = {
    "X": ", or give a data frame, which ColumnTransformer returns after .set_output(transform='pandas')",
    "y": "; of classes OneHotEncoder makes distributions (N, C)",
}
"""Additions to messages about text, by the name of the argument."""
SUMS = "divide rows by their sums, which sample_weight may take if they count votes, or give one value per row, (N,)"


def read_features(estimator: BaseEstimator, X: Any, missing: bool) -> Any:
    """Return features (N, F) of rows to predict, or the frame if the model encodes its columns.

    Raises ValueError for other columns than in ``fit``, or NaN.
    """
    if "encoding" in estimator.predictor_.task.preprocessing:
        X = as_pandas(X)
        _note_columns(estimator, X, reset=False)
        return X
    rows = _validate(estimator, X, missing, reset=False)
    names = column_names(X)
    if names is None or hasattr(estimator, "feature_names_in_"):  # whose order scikit-learn checks
        return rows
    task = estimator.predictor_.task
    return rows[:, FeatureColumns.of_model(estimator.n_features_in_, task.preprocessing).pick(names, "X")]


def feature_names(estimator: BaseEstimator, X: Any) -> list[str] | None:
    """Return the names of the features: those that scikit-learn stored, or numbers if a frame has them in disorder."""
    names = column_names(X)
    if names is None or hasattr(estimator, "feature_names_in_"):
        return list(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None
    return None if is_numbered(names) else names


def read_rows(estimator: BaseEstimator, X: Any, y: Any, missing: bool) -> tuple[Any, np.ndarray]:
    """Return features (N, F) and targets, (N, C) or (N,), float64, and store number and names of the columns.

    A data frame with categories, text, dates or, unless ``missing`` allows NaN in features, gaps is returned as a typed
    frame.
    Raises ValueError for wrong shapes, text in an array, sparse matrices, or NaN.
    """
    if (frame := _mixed(X, missing, estimator.text_columns)) is not None:
        _note_columns(estimator, as_pandas(X), reset=True)
        target = check_array(as_numbers(y, "y"), dtype=np.float64, ensure_2d=False, input_name="y")
        check_consistent_length(frame, target)
        return frame, target
    rows, target = _validate(estimator, X, missing, y=as_numbers(y, "y"), multi_output=True, y_numeric=True)
    target = check_array(target, dtype=np.float64, ensure_2d=False, input_name="y")
    if target.ndim > 2:
        raise LDLError(f"y has shape {target.shape}; distributions are (N, C), and values (N,)")
    return rows, target


def read_groups(groups: Any, X: np.ndarray) -> np.ndarray | None:
    """Return one group per row, or None. Raises ValueError for another length, or a row without a group."""
    if groups is None:
        return None
    groups = as_pandas(groups)
    check_consistent_length(X, groups)
    return to_names(column_or_1d(groups), "groups: the group")


def as_numbers(argument: Any, name: str) -> Any:
    """Return an array or frame of numbers, as :mod:`ldl.tables.entries` reads them. Raises LDLError."""
    argument = as_pandas(argument)
    if argument is None or issparse(argument):
        return argument
    if is_frame(argument):
        if len(again := argument.columns[argument.columns.duplicated()]):
            raise LDLError(f"{name}: there are several columns {again[0]!r}; give each another name")
        if all(isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in argument.dtypes):
            return argument
        columns = [(argument.columns[number], argument.iloc[:, number]) for number in range(argument.shape[1])]
        numbers = [to_numbers(column, f"{name}: column {title!r} is") for title, column in columns]
        return type(argument)(np.stack(numbers, 1), argument.index, argument.columns)
    array = np.asarray(argument)
    if array.dtype.kind in "fiu":
        return argument
    try:
        return to_numbers(array, f"{name} is")
    except EntryError as error:
        raise EntryError(f"{error}{HINTS.get(name, '')}") from None


def draw_seed(random_state: Any) -> int:
    """Return an integer, or the draw of a generator, as a seed; None uses numpy's global generator."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _mixed(X: Any, missing: bool, text_columns: Sequence[str] | str) -> Any:
    """Return the typed frame of a data frame whose columns must be encoded, or None. Raises LDLError."""
    X = as_pandas(X)
    if not is_frame(X) or not len(X):
        if text_columns:
            raise LDLError("text_columns names columns of a data frame, and X is none; give one, with these columns")
        return None
    texts = find_texts(text_columns, [str(name) for name in X.columns], X.rename(columns=str).__getitem__, "X")
    is_numeric = all(isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in X.dtypes)
    if is_numeric and not texts and not X.isna().any(axis=None):
        return None
    frame = typed(X, "X", text_columns=texts)
    return None if is_plain(frame, not missing) else frame


def _note_columns(estimator: BaseEstimator, X: Any, reset: bool) -> None:
    """Store number and names of the columns, or compare them with those of ``fit``. Raises ValueError."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before scikit-learn 1.6
        estimator._check_feature_names(X, reset=reset)
        estimator._check_n_features(X, reset=reset)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)


def _validate(estimator: BaseEstimator, X: Any, missing: bool, **options: Any) -> Any:
    finite: Any = "allow-nan" if missing else True
    options["dtype"] = np.float64
    X = as_numbers(X, "X")
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before scikit-learn 1.6
        return estimator._validate_data(X, force_all_finite=finite, **options)
    return validate_data(estimator, X, ensure_all_finite=finite, **options)


def has_values(y: np.ndarray, labels: LabelSpace | None) -> bool:
    """Return whether ``y`` has a value (N,) or (N, 1), or a point of a grid, per row instead of a distribution."""
    if y.ndim == 1 or labels is None:
        return y.ndim == 1 or y.shape[1] == 1
    return y.shape[1] == max(labels.ndim, 1) and len(labels) != y.shape[1]


def in_order(y: np.ndarray, argument: Any, labels: LabelSpace | None) -> np.ndarray:
    """Return distributions (N, C), or points (N, 2), with columns in the order of the labels, or of the axes.

    Args:
        y: The numbers.
        argument: The argument of the user, whose columns may have names.
        labels: The labels; None leaves the order.

    Raises:
        LDLError: the names are not those of the labels.
    """
    names = column_names(argument)
    if names is None or labels is None or y.ndim != 2 or y.shape[1] == 1:
        return y
    names = [label_name(name) for name in names]
    if has_values(y, labels):
        if not labels.axis_names:
            return y
        labels = LabelSpace.nominal(labels.axis_names)
    if len(names) != len(labels):
        return y  # its shape raises an error later
    if is_numbered(names) and matching(names, labels) is None:
        return y  # pandas has numbered columns without names
    fix = "name them so, or give an array with its columns in this order"
    return y[:, label_places(names, labels, "y", fix)]


def label_name(column: str) -> str:
    """Return the label that a column of ``y`` names, as in a table: ``good`` of ``label: good``."""
    return column.strip().removeprefix(LABEL_PREFIX).strip()


def read_distributions(y: np.ndarray, names: Sequence[str] | None, labels: LabelSpace | None) -> Loaded:
    """Return labels and targets of rows (N, C). If ``labels`` is None, they are the column ``names`` or numbers.

    Raises LDLError for another shape, a row that is no distribution, or another number of labels.
    """
    if y.ndim != 2:
        raise LDLError(f"y has shape {y.shape}; give distributions, (N, {'C' if labels is None else len(labels)})")
    if labels is None:
        columns = range(y.shape[1]) if names is None else names
        labels = LabelSpace.nominal([label_name(str(column)) for column in columns])
    if len(labels) != y.shape[1]:
        raise LDLError(f"y has {y.shape[1]} columns and labels are {len(labels)}; give one label per column")
    target = check_distributions(y, "y", fix=SUMS)
    return Loaded(labels, {"target": torch.tensor(target, dtype=torch.float32)})


def read_values(y: np.ndarray, labels: LabelSpace, sigma: float, encoder: Encoder) -> Loaded:
    """Return labels, encoded targets and values for values (N,) or (N, 1), or points (N, 2).

    Raises LDLError for another shape, labels without values, a value outside the labels, or ``sigma`` not positive.
    """
    y = y.squeeze(1) if y.shape[1:] == (1,) else y
    if labels.has_values and y.shape[1:] != ((2,) if labels.ndim == 2 else ()):
        raise LDLError(f"y has shape {y.shape}; give {'points, (N, 2)' if labels.ndim == 2 else 'values, (N,)'}")
    return Loaded(labels, {"target": labels.encode(torch.tensor(y, dtype=torch.float32), sigma, encoder)}, y)


def read_tested(y: np.ndarray, labels: LabelSpace, sigma: float, encoder: Encoder) -> Loaded:
    """Read test rows like :func:`read_values`, but with a distribution of NaN for a value outside the labels.

    Values may lie outside, since each fold chooses labels from its own training rows. Raises LDLError for values that
    are not finite.
    """
    points = y.reshape(len(y), -1)
    if not np.isfinite(points).all() or points.shape[1] != labels.ndim:
        return read_values(y, labels, sigma, encoder)
    low, high = (np.array([axis[end] for axis in labels.axes]) for end in (0, -1))
    inside = points.clip(low, high).reshape(y.shape)
    loaded = read_values(inside, labels, sigma, encoder)
    loaded.columns["target"][(points != inside.reshape(points.shape)).any(1)] = torch.nan
    return replace(loaded, values=y.reshape(inside.shape if labels.ndim == 2 else -1))


def choose_labels(
    y: np.ndarray, labels: LabelSpace | None, step: float | None, sigma: float | None
) -> tuple[LabelSpace, float]:
    """Return labels and sigma for values, chosen as for tables if None. Raises LDLError for too many labels."""
    if labels is None:
        grid = choose_grid(y, step=step, sigma=sigma)
        return grid.labels(), grid.sigma
    if sigma is not None or not labels.has_values:
        return labels, sigma or 1.0
    axis = min(labels.axes, key=len)
    spacing = min(float(np.diff(axis).min()) for axis in labels.axes if len(axis) > 1) if len(labels) > 1 else 1.0
    return labels, choose_sigma(spacing, float(axis[-1] - axis[0]))


def read_weights(weight: Any, X: np.ndarray) -> np.ndarray:
    """Return the weights of the rows of ``X``, (N,) float64.

    Whole numbers count rows. Others are divided by their mean.

    Raises ValueError unless there is one finite weight of at least 0 per row, and one of them is positive.
    """
    weight = as_numbers(weight, "sample_weight")
    weight = check_array(weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    if weight.shape != (len(X),):
        raise LDLError(f"sample_weight has shape {weight.shape}; give one weight per row, ({len(X)},)")
    if (weight < 0).any():
        row = int((weight < 0).argmax())
        raise LDLError(
            f"sample_weight of row {row} is {weight[row]:g}; weights must be at least 0, and 0 leaves the row out"
        )
    if not weight.any():
        raise LDLError(f"all {len(X)} sample weights are zero; give at least one row a positive weight")
    return weight if (weight == np.round(weight)).all() else weight / weight[weight > 0].mean()
