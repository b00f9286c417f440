"""Reading features and label distributions from .mat, .npz, .csv, .npy and Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.io

from ldl.data.csv_table import read_csv
from ldl.data.files import check_file
from ldl.data.row_file import RowFile
from ldl.data.tables.checks import check_distributions, check_groups, check_matrix
from ldl.data.tables.on_disk import USUAL, Storage, open_folder, open_npz
from ldl.data.tables.parquet import Parquet
from ldl.errors import LDLError, did_you_mean, some
from ldl.trust.archive import check_archive, check_mat

FEATURE_KEYS = ("features", "feature", "X", "x", "data")
LONGEST_NAME = 100
"""Of a key that a message shows; a damaged file may have anything for one."""
TARGET_KEYS = ("labels", "label_distribution", "distributions", "distribution", "targets", "target", "D", "Y", "y")
LABEL_PREFIX = "label:"
SAVED = dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as .csv, with commas between its fields")
SAVED |= dict.fromkeys((".tsv", ".tab", ".txt"), "save the table as .csv, with commas between its fields")
"""What to do with files of other programs."""
GROUP_KEYS = ("group", "groups", "person", "persons")
T = TypeVar("T")
Parts = tuple[Any, Any, list[str] | None, Any, list[str] | None]


@dataclass(frozen=True)
class Table:
    """features (N, F), finite; distributions (N, C), non-negative; label names (C) and groups (N,) where there are.

    ``columns`` are the names of the features, where the file has some. Of a table that stays on disk (``Storage``)
    features and distributions are as they stand in the file: they are checked, but sums may be a little off 1.
    """

    features: np.ndarray | RowFile
    distributions: np.ndarray | RowFile
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
    storage: Storage = USUAL,
) -> Table:
    """Read a table and check every row.

    ``.mat`` and ``.npz`` files hold two matrices under one of the usual keys, or under those given. In ``.csv``
    and Parquet files the columns named ``label:NAME`` are the distribution, one may be the groups, all others are
    features; a folder holds Parquet files of one table, or a .npy file a matrix. ``storage`` says where the numbers of
    large tables lie. The absence of groups is an error only where they are named. ``normalize`` divides rows of the
    distributions by their sums, instead of refusing sums other than 1. With ``missing`` features may be NaN, or empty
    in a .csv. Raises LDLError: a missing or unreadable file, key or column; text or NaN among the numbers; a negative
    probability; a row that does not sum to 1; unequal numbers of rows.
    """
    keys = feature_key, target_key, group_key
    parts = read_stored(path, storage, _pick, _pick_columns, *keys, missing)
    features, distributions, names, groups, columns = parts or read_file(path, _read_csv, _pick, *keys, missing)
    features, distributions = storage.place(features), storage.place(distributions)
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
        read = ", ".join([*known, ".parquet"] if pick else known)
        fix = f": {SAVED[kind]}" if kind in SAVED else ""
        raise LDLError(f"{path}: unknown kind of file {path.suffix!r}; what is read ends in {read}{fix}")
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


def read_stored(
    path: Path,
    storage: Storage,
    pick: Callable[..., T],
    pick_columns: Callable[..., T],
    *options: Any,
) -> T | None:
    """What a table holds whose rows can be read in place: ``pick(path, matrices, *options)``.

    Of Parquet files ``pick_columns(parquet, storage, *options)``; None of any other file, which is read as a whole.
    Raises LDLError.
    """
    if (parquet := Parquet.find(path)) is not None:
        return pick_columns(parquet, storage, *options)
    if os.path.isdir(path):  # ``Path.is_dir`` raises for names that cannot be
        return pick(path, open_folder(path), *options)
    if path.suffix.lower() == ".npy":
        raise LDLError(f"{path} is one matrix of a table; give the folder, with the others as .npy files beside it")
    large = open_npz(path, storage) if path.suffix.lower() == ".npz" and os.path.isfile(path) else None
    return None if large is None else pick(path, large, *options)


def find_name(path: Path, names: Iterable[str], what: str, option: str, given: str | None, usual: Sequence[str]) -> str:
    """The given one of the names in a file, or the first of the usual ones. Raises LDLError where it is not there."""
    present = [name for name in names if not name.endswith("__")]  # less what scipy adds
    for name in [given] if given else usual:
        if name in present:
            return name
    missing = f"no key {given!r}{did_you_mean(given, present)}" if given else f"no {what} under {', '.join(usual)}"
    shown = [name if name.isprintable() and len(name) <= LONGEST_NAME else repr(name[:10]) for name in present[:20]]
    more = f" and {len(present) - 20} more" if len(present) > 20 else ""
    raise LDLError(f"{path}: {missing}; it has {', '.join(shown) or 'none'}{more}: pass --data.{option}")


def find_group(path: Path, names: Iterable[str], given: str | None) -> str | None:
    """The given name of the groups, or a usual one; None where there is none.

    Raises LDLError for a wrong one, and, where none is given, for one that is usual but for its letters' case.
    """
    alike = [name for name in names if name.lower() in GROUP_KEYS and name not in GROUP_KEYS]
    if given is None and alike:
        raise LDLError(
            f"{path}: {alike[0]!r} is {alike[0].lower()!r}, the name of groups, but for its case; rename it, or pass "
            f"--data.group_key {alike[0]}"
        )
    if given is None and set(GROUP_KEYS).isdisjoint(names):
        return None
    return find_name(path, names, "group", "group_key", given, GROUP_KEYS)


def label_columns(path: Path, header: Sequence[str]) -> list[str]:
    """The columns named ``label:NAME``. Raises LDLError for one that is but for its letters' case."""
    labels = [name for name in header if name.lower().startswith(LABEL_PREFIX)]
    if wrong := [name for name in labels if not name.startswith(LABEL_PREFIX)]:
        raise LDLError(f"{path}: column {wrong[0]!r} is no label, whose name begins with {LABEL_PREFIX!r}; rename it")
    return labels


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
    labels, rest, group = _part(path, table.header, group_key, bool(table.rows))
    names, distributions = [name.removeprefix(LABEL_PREFIX) for name in labels], table.numbers(labels)
    groups = np.array(table.column(group)) if group else None
    features = table.features(*labels, *([group] if group else []))
    return features.numbers(missing=missing), distributions, names, groups, rest


def _pick_columns(
    parquet: Parquet,
    storage: Storage,
    feature_key: str | None,
    target_key: str | None,
    group_key: str | None,
    missing: bool,
) -> Parts:
    if feature_key or target_key:
        raise LDLError(
            f"{parquet.path}: feature_key and target_key are for .mat and .npz; Parquet names its columns "
            f"{LABEL_PREFIX}NAME"
        )
    labels, rest, group = _part(parquet.path, parquet.header, group_key, True, parquet.index)
    found = parquet.matrices({"features": rest, "labels": labels}, group, storage)
    names = [name.removeprefix(LABEL_PREFIX) for name in labels]
    return found["features"], found["labels"], names, found.get("groups"), rest


def _part(
    path: Path, header: Sequence[str], group_key: str | None, rows: bool, index: Container[str] = ()
) -> tuple[list[str], list[str], str | None]:
    """The columns of the distribution, those of features, none of ``index``, and that of groups. Raises LDLError."""
    labels = label_columns(path, header)
    group = find_group(path, header, group_key)
    rest = [name for name in header if name not in (group, *labels) and name not in index]
    if not (labels and rest and rows):
        otherwise = "" if labels else "; one value a row is for TabularValues, with --data.value_key COLUMN"
        raise LDLError(
            f"{path}: needs rows, feature columns, and label columns named {LABEL_PREFIX}NAME; "
            f"its columns are {some(header)}{otherwise}"
        )
    return labels, rest, group
