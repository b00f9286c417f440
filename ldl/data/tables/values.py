"""Reading features, values and groups from .mat, .npz and .csv files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.csv_table import read_csv
from ldl.data.tables.distributions import (
    FEATURE_KEYS,
    check_groups,
    check_matrix,
    find_group,
    find_name,
    read_file,
)
from ldl.errors import LDLError

VALUE_KEYS = ("value", "values", "age", "target", "y")
Columns = tuple[Any, Any, Any, list[str] | None]


@dataclass(frozen=True)
class ValueTable:
    """features (N, F) and values (N,), finite float64; groups (N,) of any type, or None where the file has none.

    ``columns`` are the names of the features, where the file has some.
    """

    features: np.ndarray
    values: np.ndarray
    groups: np.ndarray | None
    columns: list[str] | None = None


def read_values(
    path: Path,
    feature_key: str | None = None,
    value_key: str | None = None,
    group_key: str | None = None,
    missing: bool = False,
) -> ValueTable:
    """Read a table and check every row.

    ``.mat`` and ``.npz`` files hold the features (N, F), the values and maybe the groups (N entries each) under one of
    the usual keys, or under those given. A ``.csv`` names its columns: a value, maybe a group, all others features.
    The absence of groups is an error only where they are named. With ``missing`` features may be NaN, or empty in a
    .csv. Raises LDLError: a missing or unreadable file, key or
    column; text or NaN among the numbers; unequal numbers of rows.
    """
    features, values, groups, columns = read_file(path, _read_csv, _pick, missing, feature_key, value_key, group_key)
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
    value, group = _names(path, table.header, *keys)
    groups = np.array(table.column(group)) if group else None
    values = table.numbers([value])
    rest = table.without(value, *([group] if group else []))
    return rest.numbers(missing=missing), values, groups, rest.header


def _names(path: Path, names: Iterable[str], value: str | None, group: str | None) -> tuple[str, str | None]:
    """Which of a file's names are the values and the groups."""
    return find_name(path, names, "value", "value_key", value, VALUE_KEYS), find_group(path, names, group)
