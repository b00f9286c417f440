"""Reading features, values and groups from .mat, .npz, .csv, .npy and Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.csv_table import read_csv
from ldl.data.row_file import RowFile
from ldl.data.tables.checks import check_groups, check_matrix
from ldl.data.tables.distributions import (
    FEATURE_KEYS,
    find_group,
    find_name,
    label_columns,
    read_file,
    read_stored,
)
from ldl.data.tables.on_disk import USUAL, Storage
from ldl.data.tables.parquet import Parquet
from ldl.errors import LDLError, some

VALUE_KEYS = ("value", "values", "age", "target", "y")
Columns = tuple[Any, Any, Any, list[str] | None]


@dataclass(frozen=True)
class ValueTable:
    """features (N, F) and values (N,), finite float64; groups (N,) of any type, or None where the file has none.

    ``columns`` are the names of the features, where the file has some. Those of a table that stays on disk
    (``Storage``) are as they stand in the file.
    """

    features: np.ndarray | RowFile
    values: np.ndarray
    groups: np.ndarray | None
    columns: list[str] | None = None


def read_values(
    path: Path,
    feature_key: str | None = None,
    value_key: str | None = None,
    group_key: str | None = None,
    missing: bool = False,
    storage: Storage = USUAL,
) -> ValueTable:
    """Read a table and check every row.

    ``.mat`` and ``.npz`` files hold the features (N, F), the values and maybe the groups (N entries each) under one of
    the usual keys, or under those given; so do .npy files in a folder. A ``.csv`` and Parquet files name their columns:
    a value, maybe a group, all others features. ``storage`` says where the numbers of large tables lie. The absence of
    groups is an error only where they are named. With ``missing`` features may be NaN, or empty in a .csv. Raises
    LDLError: a missing or unreadable file, key or column; text or NaN among the numbers; unequal numbers of rows.
    """
    keys = feature_key, value_key, group_key
    parts = read_stored(path, storage, _pick, _pick_columns, missing, *keys)
    features, values, groups, columns = parts or read_file(path, _read_csv, _pick, missing, *keys)
    features = storage.place(features)
    features = check_matrix(path, "features", features, missing)
    values = check_matrix(path, "values", np.reshape(values, (-1, 1)))[:, 0]
    if len(values) != len(features):
        raise LDLError(f"{path}: {len(features)} rows of features but {len(values)} values")
    return ValueTable(features, values, check_groups(path, groups, len(features)), columns)


def _pick(path: Path, arrays: Mapping[str, Any], missing: bool, feature_key: str | None, *keys: str | None) -> Columns:
    feature = find_name(path, arrays, "feature", "feature_key", feature_key, FEATURE_KEYS)
    value, group = _names(path, arrays, *keys)
    return arrays[feature], arrays[value], arrays[group] if group else None, None


def _read_csv(path: Path, missing: bool, feature_key: str | None, *keys: str | None) -> Columns:
    if feature_key:
        raise LDLError(f"{path}: feature_key is for .mat and .npz; a .csv's features are the columns left over")
    table = read_csv(path)
    if not table.rows:
        raise LDLError(f"{path} has no rows")
    value, group = _columns(path, table.header, *keys)
    groups = np.array(table.column(group)) if group else None
    values = table.numbers([value])
    rest = table.features(value, *([group] if group else []))
    return rest.numbers(missing=missing), values, groups, rest.header


def _pick_columns(
    parquet: Parquet, storage: Storage, missing: bool, feature_key: str | None, *keys: str | None
) -> Columns:
    if feature_key:
        raise LDLError(f"{parquet.path}: feature_key is for .mat and .npz; features are the columns left over")
    header: Sequence[str] = parquet.header
    value, group = _columns(parquet.path, header, *keys)
    rest = [name for name in header if name not in (value, group, *parquet.index)]
    if not rest:
        raise LDLError(f"{parquet.path}: needs feature columns beside {value!r}; its columns are {some(header)}")
    found = parquet.matrices({"features": rest, "values": [value]}, group, storage)
    return found["features"], found["values"], found.get("groups"), rest


def _names(path: Path, names: Iterable[str], value: str | None, group: str | None) -> tuple[str, str | None]:
    """Which of a file's names are the values and the groups."""
    return find_name(path, names, "value", "value_key", value, VALUE_KEYS), find_group(path, names, group)


def _columns(path: Path, header: Sequence[str], value: str | None, group: str | None) -> tuple[str, str | None]:
    """Which columns are the values and the groups. Raises LDLError for those of a distribution: no features."""
    if labels := [name for name in label_columns(path, header) if name not in (value, group)]:
        raise LDLError(
            f"{path}: {some(labels)} are of a distribution, no features; leave them out of a table of values, or read "
            "it with --data TabularLDL"
        )
    return _names(path, header, value, group)
