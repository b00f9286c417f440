"""Reading features and label distributions from .mat, .npz and .csv files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from ldl.data.csv_table import LARGEST, read_csv
from ldl.data.files import check_file
from ldl.errors import LDLError, did_you_mean

FEATURE_KEYS = ("features", "feature", "X", "x", "data")
TARGET_KEYS = ("labels", "label_distribution", "distributions", "distribution", "targets", "target", "D", "Y", "y")
LABEL_PREFIX = "label:"


@dataclass(frozen=True)
class Table:
    """features (N, F), finite; distributions (N, C), non-negative; label names (C) where the file has them."""

    features: np.ndarray
    distributions: np.ndarray
    names: list[str] | None


def read_table(
    path: Path, feature_key: str | None = None, target_key: str | None = None, normalize: bool = False
) -> Table:
    """Read a table and check every row.

    ``.mat`` and ``.npz`` files hold two matrices under one of the usual keys, or under those given. In ``.csv``
    files the columns named ``label:NAME`` are the distribution, all others are features.

    Args:
        path: The file.
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        target_key: Name of the distributions, likewise.
        normalize: Divide rows of the distributions by their sums, instead of refusing sums other than 1.

    Raises:
        LDLError: a missing or unreadable file, key or column; text or NaN among the numbers; a negative
            probability; a row that does not sum to 1; unequal numbers of rows.
    """
    readers = {".mat": _read_mat, ".npz": _read_npz, ".csv": _read_csv}
    features, distributions, names = read_file(path, readers, feature_key, target_key)
    features = check_matrix(path, "features", features)
    distributions = check_matrix(path, "distributions", distributions)
    if len(features) != len(distributions):
        raise LDLError(f"{path}: {len(features)} rows of features but {len(distributions)} of distributions")
    return Table(features, check_distributions(distributions, str(path), normalize), names)


def read_file(path: Path, readers: Mapping[str, Callable[..., Any]], *options: Any) -> Any:
    """What the reader of the file's kind gives, called with the path and ``options``. Raises LDLError."""
    check_file(path, "data file", "give --data.path, or the folder it lies in with --data.root or LDL_DATA")
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise LDLError(f"{path}: unknown kind of file {path.suffix!r}; what is read ends in {', '.join(readers)}")
    try:
        return reader(path, *options)
    except LDLError:
        raise
    except Exception as error:
        raise LDLError(f"{path} cannot be read as {path.suffix}: {' '.join(str(error).split())[:200]}") from error


def check_distributions(rows: np.ndarray, source: str, normalize: bool = False) -> np.ndarray:
    """Rows on the simplex, float64: checked, and freed of rounding (sums within 1e-3 of 1 are divided out)."""
    negative = np.argwhere(rows < 0)
    if len(negative):
        row, column = negative[0]
        raise LDLError(
            f"{source}: distribution row {row}, label {column} is {rows[row, column]:g}; mass must not be negative"
        )
    sums = rows.sum(1)
    if normalize:
        empty = np.flatnonzero(sums <= 0)
        if len(empty):
            raise LDLError(f"{source}: distribution row {empty[0]} is all zero and cannot be normalised; remove it")
    else:
        off = np.flatnonzero(np.abs(sums - 1) > 1e-3)
        if len(off):
            raise LDLError(
                f"{source}: distribution row {off[0]} sums to {sums[off[0]]:.6g}, not 1 ({len(off)} such rows); "
                "correct the file, or pass --data.normalize true to divide rows by their sums"
            )
    return rows / sums[:, None]


def _read_mat(path: Path, feature_key: str | None, target_key: str | None) -> tuple[Any, Any, None]:
    return *_pick_two(path, scipy.io.loadmat(str(path)), feature_key, target_key), None


def _read_npz(path: Path, feature_key: str | None, target_key: str | None) -> tuple[Any, Any, None]:
    with np.load(path, allow_pickle=False) as arrays:
        # Not dict(arrays): an object array beside the two would be refused although nobody asks for it.
        return *_pick_two(path, arrays, feature_key, target_key), None


def _read_csv(path: Path, feature_key: str | None, target_key: str | None) -> tuple[Any, Any, list[str]]:
    if feature_key or target_key:
        raise LDLError(
            f"{path}: feature_key and target_key are for .mat and .npz; a .csv names its columns {LABEL_PREFIX}NAME"
        )
    table = read_csv(path)
    labels = [name for name in table.header if name.startswith(LABEL_PREFIX)]
    if not labels or len(labels) == len(table.header) or not table.rows:
        raise LDLError(
            f"{path}: needs rows, feature columns, and label columns named {LABEL_PREFIX}NAME; "
            f"its columns are {table.header[:6]}"
        )
    distributions = table.numbers(labels)
    return table.without(*labels).numbers(), distributions, [name.removeprefix(LABEL_PREFIX) for name in labels]


def _pick_two(
    path: Path, arrays: Mapping[str, Any], feature_key: str | None, target_key: str | None
) -> tuple[Any, Any]:
    present = [key for key in arrays if not key.startswith("__")]
    picked = []
    for what, option, wanted, usual in (
        ("features", "feature_key", feature_key, FEATURE_KEYS),
        ("distributions", "target_key", target_key, TARGET_KEYS),
    ):
        key = next((key for key in ([wanted] if wanted else usual) if key in present), None)
        if key is None:
            missing = (
                f"no key {wanted!r}{did_you_mean(wanted, present)}" if wanted else f"no {what} under {', '.join(usual)}"
            )
            raise LDLError(f"{path}: {missing}; it has {', '.join(present) or 'none'}: pass --data.{option}")
        picked.append(arrays[key])
    return picked[0], picked[1]


def check_matrix(path: Path, what: str, array: Any) -> np.ndarray:
    """The array as a finite (N, F) float64 matrix. Raises LDLError."""
    array = array.toarray() if scipy.sparse.issparse(array) else np.asarray(array)
    if array.ndim != 2 or 0 in array.shape:
        raise LDLError(f"{path}: {what} have shape {array.shape}; a matrix with one row a sample is needed")
    if array.dtype.kind not in "fiub":
        raise LDLError(f"{path}: {what} are {array.dtype}, not numbers")
    array = array.astype(np.float64)
    bad = np.argwhere(~(np.abs(array) <= LARGEST))
    if len(bad):
        row, column = bad[0]
        raise LDLError(
            f"{path}: {what} row {row}, column {column} is {array[row, column]}; every entry must be a finite number, "
            f"at most {LARGEST:g}"
        )
    return array
