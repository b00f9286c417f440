"""Inputs of a trained model, made of whatever a user has: what the model was trained on says how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.data.arrays import as_array
from ldl.errors import LDLError

WHOLE = ("uint8", "int8", "int16", "int32", "int64")
"""Types of numbers that are no fractions; backbones may take them for something else than the same as floats."""


@dataclass(frozen=True)
class Inputs:
    """Instances to predict, made batch by batch.

    Attributes:
        size: Their number.
        make: Gives the inputs (B, ...) of some of them, as the backbone takes them. Where loader processes are to call
            it, it is no closure: these cannot be sent.
        names: What each is called; None where nothing names them.
        facts: What else is known of each, (size,) by name, such as where a face lies in its picture.
    """

    size: int
    make: Callable[[np.ndarray], Tensor]
    names: list[str] | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)


def prepared(given: Any, shape: tuple[int, ...], dtype: str | None, missing: bool = False) -> Inputs:
    """Inputs that need no preparation: an array or tensor (N, ...) of the numbers that the model was trained on.

    Args:
        given: The array.
        shape: Of one input; -1 is any length.
        dtype: Type of the numbers in training; None where nobody knows.
        missing: Whether inputs may hold NaN, as bags do for instances that they have not.

    Raises:
        LDLError: another shape or kind of number, or a number that is not finite.
    """
    array = as_array(given)
    fits = array.ndim == len(shape) + 1 and all(side in (-1, found) for side, found in zip(shape, array.shape[1:]))
    if not fits or 0 in array.shape:
        wanted = ", ".join("any" if side == -1 else str(side) for side in shape)
        raise LDLError(f"inputs have shape {array.shape}, but the model takes (N, {wanted}), a row an instance")
    return Inputs(len(array), partial(take, torch.from_numpy(as_trained(array, dtype, missing))))


def as_trained(array: np.ndarray, dtype: str | None, missing: bool = False) -> np.ndarray:
    """Numbers of the type of training. Raises LDLError for those that mean something else, or are not finite."""
    if array.dtype.kind not in "fiub":
        raise LDLError(f"inputs are {array.dtype}, not numbers")
    whole = array.dtype.kind in "iub"
    if dtype in WHOLE:
        ends = np.iinfo(dtype)
        if not whole or array.min() < ends.min or array.max() > ends.max:
            wanted = "pixels of 0 to 255" if dtype == "uint8" else f"whole numbers of {ends.min} to {ends.max}"
            raise LDLError(f"inputs are {array.dtype}, but the model takes {wanted} in {dtype}; give it those")
        return array.astype(dtype)
    if array.dtype == np.uint8:
        if dtype is not None:
            raise LDLError(f"inputs are uint8, but the model was trained on {dtype}; scale them as in training")
        return array
    with np.errstate(over="ignore"):
        taken = array.astype(dtype if dtype in ("float32", "float64") else np.float32)
    if len(bad := np.argwhere(np.isinf(taken) if missing else ~np.isfinite(taken))):
        raise LDLError(
            f"input {bad[0][0]} holds {array[tuple(bad[0])]}; every entry must be a finite number, at most "
            f"{np.finfo(taken.dtype).max:.2g}"
        )
    return taken


def take(instances: Tensor, rows: np.ndarray) -> Tensor:
    """Some of all inputs (N, ...), where these are there."""
    return instances[torch.from_numpy(rows)]
