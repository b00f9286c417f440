"""Reading features and label distributions from .mat, .npz and .csv files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.io
import scipy.sparse

from ldl.data.csv_table import LARGEST, read_csv
from ldl.data.files import check_file
from ldl.errors import LDLError, did_you_mean
from ldl.trust.archive import check_archive, check_mat

FEATURE_KEYS = ("features", "feature", "X", "x", "data")
LONGEST_NAME = 100
"""Of a key that a message shows; a damaged file may have anything for one."""
MOST_NUMBERS = 2**30
"""Of a sparse matrix, which becomes a full one."""
TARGET_KEYS = ("labels", "label_distribution", "distributions", "distribution", "targets", "target", "D", "Y", "y")
LABEL_PREFIX = "label:"
GROUP_KEYS = ("group", "groups", "person", "persons")
FIX = "correct the file, or pass --data.normalize true to divide rows by their sums"
T = TypeVar("T")
Parts = tuple[Any, Any, list[str] | None, Any, list[str] | None]


@dataclass(frozen=True)
class Table:
    """features (N, F), finite; distributions (N, C), non-negative; label names (C) and groups (N,) where there are.

    ``columns`` are the names of the features, where the file has some.
    """

    features: np.ndarray
    distributions: np.ndarray
    names: list[str] | None
    groups: np.ndarray | None
    columns: list[str] | None = None


def read_table(
    path: Path,
    feature_key: str | None = None,
    target_key: str | None = None,
    normalize: bool = False,
    group_key: str | None = None,
    missing: bool = False,
) -> Table:
    """Read a table and check every row.

    ``.mat`` and ``.npz`` files hold two matrices under one of the usual keys, or under those given. In ``.csv``
    files the columns named ``label:NAME`` are the distribution, one may be the groups, all others are features. The
    absence of groups is an error only where they are named. ``normalize`` divides rows of the distributions by their
    sums, instead of refusing sums other than 1. With ``missing`` features may be NaN, or empty in a .csv. Raises
    LDLError: a missing or unreadable file, key or column; text or NaN among the numbers; a negative probability; a row
    that does not sum to 1; unequal numbers of rows.
    """
    keys = feature_key, target_key, group_key
    features, distributions, names, groups, columns = read_file(path, _read_csv, _pick, *keys, missing)
    features = check_matrix(path, "features", features, missing)
    distributions = check_matrix(path, "distributions", distributions)
    if len(features) != len(distributions):
        raise LDLError(f"{path}: {len(features)} rows of features but {len(distributions)} of distributions")
    distributions = check_distributions(distributions, str(path), normalize)
    return Table(features, distributions, names, check_groups(path, groups, len(features)), columns)


def read_file(path: Path, csv: Callable[..., T], pick: Callable[..., T] | None = None, *options: Any) -> T:
    """What a table holds: ``csv(path, *options)``, or of a .mat or .npz file ``pick(path, arrays, *options)``.

    Without ``pick`` these two are refused. Raises LDLError.
    """
    check_file(path, "data file", "give --data.path, or its folder with --data.root or LDL_DATA")
    kind, known = path.suffix.lower(), (".mat", ".npz", ".csv") if pick else (".csv",)
    if kind not in known:
        raise LDLError(f"{path}: unknown kind of file {path.suffix!r}; what is read ends in {', '.join(known)}")
    try:
        if pick is None or kind == ".csv":
            return csv(path, *options)
        if kind == ".mat":
            check_mat(path)
            return pick(path, scipy.io.loadmat(str(path)), *options)
        check_archive(path)
        with np.load(path, allow_pickle=False) as arrays:
            # Not dict(arrays): an object array beside those picked would be refused although nobody asks for it.
            return pick(path, arrays, *options)
    except LDLError:
        raise
    except Exception as error:
        raise LDLError(f"{path} cannot be read as {path.suffix}: {' '.join(str(error).split())[:200]}") from error


def find_name(path: Path, names: Iterable[str], what: str, option: str, given: str | None, usual: Sequence[str]) -> str:
    """The given one of the names in a file, or the first of the usual ones. Raises LDLError where it is not there."""
    present = [name for name in names if not name.endswith("__")]  # less what scipy adds
    for name in [given] if given else usual:
        if name in present:
            return name
    missing = f"no key {given!r}{did_you_mean(given, present)}" if given else f"no {what} under {', '.join(usual)}"
    shown = [name if name.isprintable() and len(name) <= LONGEST_NAME else repr(name[:10]) for name in present[:20]]
    raise LDLError(f"{path}: {missing}; it has {', '.join(shown) or 'none'}: pass --data.{option}")


def check_distributions(rows: np.ndarray, source: str, normalize: bool = False, fix: str = FIX) -> np.ndarray:
    """Rows on the simplex, float64: checked, and freed of rounding (sums within 1e-3 of 1 are divided out).

    ``fix`` says what to do about other sums.
    """
    if len(negative := np.argwhere(rows < 0)):
        row, column = negative[0]
        raise LDLError(
            f"{source}: distribution row {row}, label {column} is {rows[row, column]:g}; mass must not be negative"
        )
    sums = rows.sum(1)
    if normalize and len(empty := np.flatnonzero(sums <= 0)):
        raise LDLError(f"{source}: distribution row {empty[0]} is all zero and cannot be normalised; remove it")
    if not normalize and len(off := np.flatnonzero(np.abs(sums - 1) > 1e-3)):
        raise LDLError(
            f"{source}: distribution row {off[0]} sums to {sums[off[0]]:.6g}, not 1 ({len(off)} such rows); {fix}"
        )
    return rows / sums[:, None]


def find_group(path: Path, names: Iterable[str], given: str | None) -> str | None:
    """The given name of the groups, or a usual one; None where there is none. Raises LDLError for a wrong one."""
    if given is None and set(GROUP_KEYS).isdisjoint(names):
        return None
    return find_name(path, names, "group", "group_key", given, GROUP_KEYS)


def check_groups(path: Path, groups: Any, rows: int) -> np.ndarray | None:
    """One group a row, (N,) of any type that sorts, or None of None. Raises LDLError where some are missing."""
    if groups is None:
        return None
    groups = np.ravel(groups)
    if groups.dtype == object:  # cells of a .mat file
        groups = np.array([str(np.squeeze(entry)) for entry in groups])
    if len(groups) != rows:
        raise LDLError(f"{path}: {rows} rows of features but {len(groups)} groups")
    blank = np.isnan(groups) if groups.dtype.kind == "f" else np.char.strip(groups.astype(str)) == ""
    if blank.any():
        raise LDLError(
            f"{path}: the group of row {blank.argmax()} is missing ({blank.sum()} such rows); give every row one, of "
            "its own where it belongs to none"
        )
    return groups


def _pick(
    path: Path,
    arrays: Mapping[str, Any],
    feature_key: str | None,
    target_key: str | None,
    group_key: str | None,
    missing: bool,
) -> Parts:
    features = find_name(path, arrays, "features", "feature_key", feature_key, FEATURE_KEYS)
    target = find_name(path, arrays, "distributions", "target_key", target_key, TARGET_KEYS)
    group = find_group(path, arrays, group_key)
    return arrays[features], arrays[target], None, arrays[group] if group else None, None


def _read_csv(
    path: Path, feature_key: str | None, target_key: str | None, group_key: str | None, missing: bool
) -> Parts:
    if feature_key or target_key:
        raise LDLError(
            f"{path}: feature_key and target_key are for .mat and .npz; a .csv names its columns {LABEL_PREFIX}NAME"
        )
    table = read_csv(path)
    labels = [name for name in table.header if name.startswith(LABEL_PREFIX)]
    group = find_group(path, table.header, group_key)
    if not labels or len(labels) + bool(group) == len(table.header) or not table.rows:
        raise LDLError(
            f"{path}: needs rows, feature columns, and label columns named {LABEL_PREFIX}NAME; "
            f"its columns are {table.header[:6]}"
        )
    distributions = table.numbers(labels)
    rest = table.without(*labels, *([group] if group else []))
    names = [name.removeprefix(LABEL_PREFIX) for name in labels]
    groups = np.array(table.column(group)) if group else None
    return rest.numbers(missing=missing), distributions, names, groups, rest.header


def check_matrix(path: Path | str, what: str, array: Any, missing: bool = False) -> np.ndarray:
    """The array as a finite (N, F) float64 matrix; with ``missing`` it may hold NaN. Raises LDLError."""
    if scipy.sparse.issparse(array) and array.shape[0] * array.shape[1] > MOST_NUMBERS:
        raise LDLError(f"{path}: {what} have shape {array.shape}, {MOST_NUMBERS} numbers at most are read")
    array = array.toarray() if scipy.sparse.issparse(array) else np.asarray(array)
    if array.ndim != 2 or 0 in array.shape:
        raise LDLError(f"{path}: {what} have shape {array.shape}; a matrix with one row a sample is needed")
    if array.dtype.kind not in "fiub":
        raise LDLError(f"{path}: {what} are {array.dtype}, not numbers")
    array = array.astype(np.float64)
    if len(bad := np.argwhere(~((np.abs(array) <= LARGEST) | (missing & np.isnan(array))))):
        row, column = bad[0]
        raise LDLError(
            f"{path}: {what} row {row}, column {column} is {array[row, column]}; every entry must be a finite number, "
            f"at most {LARGEST:g}"
        )
    return array
