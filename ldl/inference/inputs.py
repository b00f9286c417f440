"""Turn user input into model inputs: arrays, rows and bags, with the columns and the scaling of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.data.tables.feature_columns import FeatureColumns
from ldl.data.tables.scaling import FeatureScaler
from ldl.errors import LDLError, some
from ldl.tables import open_named
from ldl.tables.entries import as_array, as_pandas, is_frame, to_names
from ldl.tables.roles import bag_column

INTEGER_TYPES = ("uint8", "int8", "int16", "int32", "int64")
"""Integer types; a backbone may treat them differently from floats of the same values."""


@dataclass(frozen=True)
class Inputs:
    """Instances to predict, prepared batch by batch.

    Attributes:
        size: Number of instances.
        make: Returns the inputs (B, ...) of some instances for the backbone. It must be picklable for loader processes.
        names: Name of each instance; None without names.
        facts: Further columns (size,) by name, such as the place of a face in its image.
    """

    size: int
    make: Callable[[np.ndarray], Tensor]
    names: list[str] | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)


def prepared(inputs: Any, shape: tuple[int, ...], dtype: str | None, missing: bool = False) -> Inputs:
    """Return inputs that need no preparation: an array or tensor (N, ...) like the inputs of training.

    Args:
        inputs: The array.
        shape: Of one input; -1 is any length.
        dtype: Type of the numbers in training; None if unknown.
        missing: Whether inputs may be NaN, as the missing instances of bags.

    Raises:
        LDLError: The shape or kind of number differs, or a number is not finite.
    """
    array = as_array(inputs)
    fits = array.ndim == len(shape) + 1 and all(side in (-1, length) for side, length in zip(shape, array.shape[1:]))
    if not fits or 0 in array.shape:
        wanted = ", ".join("any" if side == -1 else str(side) for side in shape)
        raise LDLError(f"inputs have shape {array.shape}, but the model takes (N, {wanted}), a row an instance")
    if array.dtype == np.uint8 and dtype not in (None, *INTEGER_TYPES):
        raise LDLError(f"inputs are uint8, but the model was trained on {dtype}; scale them as in training")
    if dtype in INTEGER_TYPES:
        converted = _as_integers(array, dtype, "inputs")
    else:
        with np.errstate(over="ignore"):
            kept = np.uint8 if array.dtype == np.uint8 else np.float64 if dtype == "float64" else np.float32
            converted = array.astype(kept, copy=array.dtype != np.uint8)
        if np.isinf(converted).any() or (not missing and np.isnan(converted).any()):
            raise LDLError("inputs hold NaN or infinity; every entry must be a finite float32 number")
    return Inputs(len(array), partial(_take, torch.from_numpy(converted)))


def read_instances(
    instances: Any,
    shape: tuple[int, ...],
    preprocessing: dict[str, Any],
    missing: bool = False,
    feature_key: str | None = None,
) -> Inputs:
    """Return rows, or bags of rows, as inputs of a model.

    Args:
        instances: A frame of pandas or polars, a table of pyarrow, or a file, which a model of columns of text or dates
            needs; rows also as an array or tensor (N, F), bags
            as a list of arrays (J, F) or an array (N, J, F) with NaN for missing instances. The column ``bag`` of a
            frame or .csv names the bag of a row.
        shape: Of one input: (F,), or (J, F) of bags.
        preprocessing: Names, encoding, scaling or type of the features in the checkpoint. Features with an integer
            ``dtype`` in training are not scaled; other features become float32.
        missing: Whether features may be NaN.
        feature_key: Name of the features in a .mat or .npz file; None uses the name in training.

    Raises:
        LDLError: The features differ, or an entry is no number.
    """
    columns = FeatureColumns.of_model(shape[-1], preprocessing, missing, feature_key)
    scaler = FeatureScaler.from_state(preprocessing.get("scaling") or {"kind": "none", "clip": None})
    instances = as_pandas(instances)
    instances = Path(instances) if isinstance(instances, str) else instances
    source = str(instances) if isinstance(instances, Path) else "data frame" if is_frame(instances) else "inputs"
    if len(shape) == 2:
        return _bags(instances, columns, partial(scaler.apply, source=source))
    names: list[str] | None = None
    if isinstance(instances, Path):
        features = columns.of_file(instances)
    elif is_frame(instances):
        features, names = columns.of_frame(instances, source), _row_names(instances)
    else:
        features = columns.of_array(instances)
    dtype = preprocessing.get("dtype")
    whole = dtype in INTEGER_TYPES
    scaled = torch.from_numpy(_as_integers(features, dtype, source)) if whole else scaler.apply(features, source)
    return Inputs(len(scaled), partial(_take, scaled), names)


def _bags(instances: Any, columns: FeatureColumns, scale: Callable[[np.ndarray], Tensor]) -> Inputs:
    names: list[str] | None = None
    if isinstance(instances, Path) or is_frame(instances):
        owner, features = _owned(instances, columns)
        numbers = {name: number for number, name in enumerate(dict.fromkeys(owner))}
        names, bag = list(numbers), np.array([numbers[name] for name in owner])
        scaled = list(scale(features)[bag.argsort(kind="stable")].split(np.bincount(bag).tolist()))
    else:
        scaled = [scale(_present(columns, bag, f"bag {number}")) for number, bag in enumerate(instances)]
    if not scaled:
        raise LDLError("there is no bag to predict; give at least one array (instances, features)")
    return Inputs(len(scaled), partial(_padded, scaled), names)


def _row_names(frame: Any) -> list[str] | None:
    """Return the index of a data frame, or None if it only numbers the rows."""
    plain = list(frame.index) == list(range(len(frame)))
    return None if plain else [str(name) for name in frame.index]


def _as_integers(array: np.ndarray, dtype: str | None, source: str) -> np.ndarray:
    """Convert whole numbers to the integers of training. Raises LDLError for fractions, and for others too large."""
    ends = np.iinfo(np.dtype(dtype))
    wrong = (array < ends.min) | (array > ends.max) | (array % 1 != 0)
    if wrong.any():
        raise LDLError(
            f"{source}: {array[wrong][0]:g} in {array.dtype}, but the model takes whole numbers of {ends.min} to "
            f"{ends.max} in {dtype}; give it those"
        )
    return array.astype(dtype)


def _owned(instances: Any, columns: FeatureColumns) -> tuple[list[str], np.ndarray]:
    """Return the bag name of every row, and the features (N, F). Raises LDLError for a row without a bag."""
    if is_frame(instances):
        if (bag := bag_column(list(instances.columns))) is None:
            present = some([str(name) for name in instances.columns])
            raise LDLError(f"data frame: no column 'bag', the bag of each row; there are {present}")
        owner = to_names(instances[bag], "data frame: the bag")
        return list(map(str, owner)), columns.of_frame(instances.drop(columns=bag), "data frame")
    table = open_named(instances, has_header=lambda first: bag_column(first) is not None)
    if table is None:
        raise LDLError(f"{instances}: bags are read from .csv and Parquet files")
    if (bag := bag_column(table.header)) is not None:
        return list(map(str, table.groups(bag))), columns.of_table(table, bag)
    # A file without a header has the columns label, bag and features, or bag and features.
    first = [str(number + 1) for number in range(len(table.header) - columns.count)]
    if len(first) not in (1, 2):
        raise LDLError(
            f"{instances}: {len(table.header)} columns, and no header that names 'bag'; the model takes "
            f"{columns.count} features, after the label, if any, and the bag"
        )
    features = columns.of_array(table.numbers(table.others(*first)), str(instances))
    return list(map(str, table.groups(first[-1]))), features


def _present(columns: FeatureColumns, bag: Any, source: str) -> np.ndarray:
    array = as_array(bag)
    if array.ndim == 2 and array.dtype.kind == "f":
        array = array[~np.isnan(array).all(1)]
        if not len(array):
            raise LDLError(f"{source} has no instance; leave the bag out")
    return columns.of_array(array, source)


def _take(instances: Tensor, rows: np.ndarray) -> Tensor:
    return instances[torch.from_numpy(rows)]


def _padded(bags: list[Tensor], chosen: np.ndarray) -> Tensor:
    parts = [bags[number] for number in chosen]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=torch.nan)
