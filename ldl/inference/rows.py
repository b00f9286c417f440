"""Rows of features, and bags of them, as a model takes them: found by name, scaled as in training."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.data.arrays import as_array
from ldl.data.csv_table import read_csv
from ldl.data.tables.distributions import read_file
from ldl.data.tables.feature_columns import FeatureColumns, read_parquet
from ldl.data.tables.scaling import FeatureScaler
from ldl.errors import LDLError, some
from ldl.inference.inputs import WHOLE, Inputs, as_trained, take


def read_instances(
    given: Any, shape: tuple[int, ...], known: dict[str, Any], missing: bool = False, feature_key: str | None = None
) -> Inputs:
    """Rows, or bags of them, as a model takes them.

    Args:
        given: An array, a frame or a file: see :func:`rows` and :func:`bags`.
        shape: Of one input: (F,), or (J, F) of bags.
        known: What a checkpoint knows of the features: their names, their scaling, or their type.
        missing: Whether features may be NaN.
        feature_key: What the features are called in a .mat or .npz file; None takes the name that is known.

    Raises:
        LDLError: other features than those, or what is no number.
    """
    columns = FeatureColumns(shape[-1], known.get("features"), known.get("key"), missing, feature_key)
    scaler = FeatureScaler.from_state(known.get("scaling") or {"kind": "none", "clip": None})
    dtype = known.get("dtype")
    return rows(given, columns, scaler, dtype) if len(shape) == 1 else bags(given, columns, scaler)


def rows(given: Any, columns: FeatureColumns, scaler: FeatureScaler, dtype: str | None = None) -> Inputs:
    """Rows of an array (N, F), a tensor, a data frame, or a file of them. Raises LDLError.

    Features of a ``dtype`` of whole numbers in training are not scaled; all others are float32.
    """
    names: list[str] | None = None
    if isinstance(given, str | Path):
        source, features = str(given), columns.of_file(Path(given))
    elif is_frame(given):
        source, features = "data frame", columns.of_frame(given, "data frame")
        names = row_names(given)
    else:
        source, features = "inputs", columns.of_array(given)
    scaled = _whole(features, dtype, source) if dtype in WHOLE else scaler.apply(features, source)
    return Inputs(len(scaled), partial(take, scaled), names)


def bags(given: Any, columns: FeatureColumns, scaler: FeatureScaler) -> Inputs:
    """Bags: a list of arrays (J, F), an array (N, J, F) with NaN for instances that a bag has not, a frame or a file.

    Of a frame or a .csv the column ``bag`` says whose a row is. Raises LDLError.
    """
    names: list[str] | None = None
    if isinstance(given, str | Path) or is_frame(given):
        source = str(given) if isinstance(given, str | Path) else "data frame"
        owner, features = _owned(given, columns)
        if nameless := [row for row, name in enumerate(owner) if not name.strip()]:
            raise LDLError(f"{source}: row {nameless[0]} has no name of a bag; give every row one")
        numbers = {name: number for number, name in enumerate(dict.fromkeys(owner))}
        names, bag = list(numbers), np.array([numbers[name] for name in owner])
        order = bag.argsort(kind="stable")
        scaled = list(scaler.apply(features, source)[order].split(np.bincount(bag).tolist()))
    elif not hasattr(given, "__len__"):
        shown = str(given)[:80]
        raise LDLError(f"bags are a list of arrays (J, F), an array (N, J, F), a frame or a file, not {shown!r}")
    else:
        parts = [_present(columns, bag, f"bag {number}") for number, bag in enumerate(given)]
        scaled = [scaler.apply(part, "inputs") for part in parts]
    if not scaled:
        raise LDLError("there is no bag to predict; give at least one array (instances, features)")
    return Inputs(len(scaled), partial(_padded, scaled), names)


def is_frame(given: Any) -> bool:
    """Whether this is a data frame of pandas, which need not be installed."""
    return hasattr(given, "columns") and hasattr(given, "iloc")


def row_names(frame: Any) -> list[str] | None:
    """The index of a data frame, where it is not just the numbers of the rows."""
    plain = list(frame.index) == list(range(len(frame)))
    return None if plain else [str(name) for name in frame.index]


def _whole(features: np.ndarray, dtype: str, source: str) -> Tensor:
    """Features (N, F) in a type of whole numbers. Raises LDLError for others."""
    if len(wrong := np.argwhere((features % 1 != 0) | (np.abs(features) > 2**53))):
        row, column = wrong[0]
        raise LDLError(
            f"{source}: row {row}, feature {column} is {features[row, column]:g}, but the model takes whole numbers in "
            f"{dtype}; give it those"
        )
    return torch.from_numpy(as_trained(features.astype(np.int64), dtype))


def _owned(given: Any, columns: FeatureColumns) -> tuple[list[str], np.ndarray]:
    """Of every row the name of its bag, empty where it has none, and the features (N, F)."""
    if is_frame(given):
        if "bag" not in given.columns:
            there = some([str(name) for name in given.columns])
            raise LDLError(f"data frame: no column 'bag', which says whose a row is; there are {there}")
        owner = given["bag"].astype(object).where(given["bag"].notna(), "")
        return [str(name) for name in owner], columns.of_frame(given.drop(columns="bag"), "data frame")
    path = Path(given)
    if path.suffix.lower() == ".parquet":
        return _owned(read_parquet(path), columns)
    table = read_file(path, partial(read_csv, has_header=lambda first: "bag" in first))
    headed = "bag" in table.header
    # Without a header a file is as in training, label, bag and features, or lacks the labels.
    first = [str(number + 1) for number in range(len(table.header) - columns.count)]
    if not headed and len(first) not in (1, 2):
        raise LDLError(
            f"{path}: {len(table.header)} columns, and no header that names 'bag'; the model takes "
            f"{columns.count} features, after the label, if any, and the bag"
        )
    if headed:
        return table.column("bag"), columns.of_table(table.without("bag"))
    return table.column(first[-1]), columns.of_array(table.without(*first).numbers(), str(path))


def _present(columns: FeatureColumns, bag: Any, source: str) -> np.ndarray:
    array = as_array(bag)
    if array.ndim == 2 and array.dtype.kind == "f":
        array = array[~np.isnan(array).all(1)]
    return columns.of_array(array, source)


def _padded(bags: list[Tensor], chosen: np.ndarray) -> Tensor:
    parts = [bags[number] for number in chosen]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=torch.nan)
