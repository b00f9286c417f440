"""Reading features, values and groups from .mat, .npz and .csv files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from ldl.data.csv_table import read_csv
from ldl.data.tables.distributions import FEATURE_KEYS, check_matrix, read_file
from ldl.errors import LDLError, did_you_mean

VALUE_KEYS = ("value", "values", "age", "target", "y")
GROUP_KEYS = ("group", "groups", "person", "persons")


@dataclass(frozen=True)
class ValueTable:
    """features (N, F) and values (N,), finite float64; groups (N,) of any type, or None where the file has none."""

    features: np.ndarray
    values: np.ndarray
    groups: np.ndarray | None


def read_values(
    path: Path, feature_key: str | None = None, value_key: str | None = None, group_key: str | None = None
) -> ValueTable:
    """Read a table and check every row.

    ``.mat`` and ``.npz`` files hold the features (N, F), the values and maybe the groups (N entries each) under one of
    the usual keys, or under those given. A ``.csv`` names its columns: a value, maybe a group, all others features.

    Args:
        path: The file.
        feature_key: Name of the features in a .mat or .npz file; None tries the usual ones.
        value_key: Name of the values, likewise.
        group_key: Name of the groups, likewise; their absence is an error only where they are named.

    Raises:
        LDLError: a missing or unreadable file, key or column; text or NaN among the numbers; unequal numbers of rows.
    """
    readers: dict[str, Callable[..., Any]] = {".mat": _read_mat, ".npz": _read_npz, ".csv": _read_csv}
    features, values, groups = read_file(path, readers, feature_key, value_key, group_key)
    features = check_matrix(path, "features", features)
    values = check_matrix(path, "values", np.reshape(values, (-1, 1)))[:, 0]
    groups = None if groups is None else np.ravel(groups)
    for what, column in (("values", values), ("groups", groups)):
        if column is not None and len(column) != len(features):
            raise LDLError(f"{path}: {len(features)} rows of features but {len(column)} {what}")
    return ValueTable(features, values, groups)


def _read_mat(path: Path, *keys: str | None) -> tuple[Any, Any, Any]:
    return _pick(path, scipy.io.loadmat(str(path)), *keys)


def _read_npz(path: Path, *keys: str | None) -> tuple[Any, Any, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return _pick(path, arrays, *keys)


def _pick(path: Path, arrays: Mapping[str, Any], *keys: str | None) -> tuple[Any, Any, Any]:
    present = [name for name in arrays if not name.startswith("__")]
    feature, value, group = _names(path, present, keys, FEATURE_KEYS)
    return arrays[feature or ""], arrays[value], arrays[group] if group else None


def _read_csv(path: Path, feature_key: str | None, *keys: str | None) -> tuple[Any, Any, Any]:
    if feature_key:
        raise LDLError(f"{path}: feature_key is for .mat and .npz; a .csv's features are the columns left over")
    table = read_csv(path)
    if not table.rows:
        raise LDLError(f"{path} has no rows")
    _, value, group = _names(path, table.header, (None, *keys), None)
    groups = np.array(table.column(group)) if group else None
    values = table.numbers([value])
    return table.without(value, *([group] if group else [])).numbers(), values, groups


def _names(
    path: Path, present: list[str], keys: tuple[str | None, ...], features: tuple[str, ...] | None
) -> tuple[str | None, str, str | None]:
    """Which of the names that are present are the features (where ``features`` are usual names), values and groups."""
    found: list[str | None] = []
    for what, wanted, usual in zip(("feature", "value", "group"), keys, (features, VALUE_KEYS, GROUP_KEYS)):
        name = next((name for name in ([wanted] if wanted else usual or ()) if name in present), None)
        if name is None and usual is not None and (wanted or what != "group"):
            missing = (
                f"no {wanted!r}{did_you_mean(wanted, present)}" if wanted else f"no {what} under {', '.join(usual)}"
            )
            raise LDLError(f"{path}: {missing}; it has {', '.join(present[:8]) or 'none'}: pass --data.{what}_key")
        found.append(name)
    return found[0], found[1] or "", found[2]
