"""The form of what a checkpoint keeps of its calibration rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError

CALIBRATION_KEY = "calibration"
"""Where a checkpoint keeps it, next to Lightning's own entries."""

MOST_SCORES = 10_000
"""Of one axis of the labels."""


def from_numpy(score: np.ndarray, weight: np.ndarray, units: int) -> dict[str, Any]:
    """What a checkpoint keeps of one axis: the scores (M,), rising, their weights (M,), and what these sum to."""
    return {"score": torch.from_numpy(score), "weight": torch.from_numpy(weight), "units": units}


def to_numpy(saved: Any, axes: int) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """The inverse of :func:`from_numpy`, for a list of all axes.

    Args:
        saved: What a checkpoint holds.
        axes: Of the labels; 1 of nominal ones.

    Raises:
        LDLError: naming what is not as :func:`from_numpy` can have made it.
    """
    _must(isinstance(saved, list) and len(saved) == axes, f"must be a list of {axes}")
    return [_axis(own) for own in saved]


def _axis(own: Any) -> tuple[np.ndarray, np.ndarray, int]:
    whole = isinstance(own, dict) and own.keys() == {"score", "weight", "units"}
    _must(whole, "must have score, weight and units, and nothing else")
    units = own["units"]
    _must(type(units) is int and 0 < units < 2**53, f"units is {str(units)[:80]}, not a number of rows or groups")
    score, weight = (_column(own[name], name) for name in ("score", "weight"))
    _must(len(score) == len(weight), f"has {len(score)} scores and {len(weight)} weights")
    _must(bool((score >= 0).all() and (np.diff(score) >= 0).all()), "score must be at least 0 and rise")
    sums = bool((weight > 0).all()) and math.isclose(weight.sum(), units, rel_tol=1e-6)
    _must(sums, f"weight must be above 0 and sum to its {units} units")
    return score, weight, units


def _column(saved: Any, name: str) -> np.ndarray:
    plain = isinstance(saved, Tensor) and saved.layout == torch.strided and saved.device.type != "meta"
    _must(plain and saved.dtype == torch.float64 and saved.ndim == 1, f"{name} is no column of float64")
    _must(0 < len(saved) <= MOST_SCORES, f"{name} has {len(saved)} entries, not 1 to {MOST_SCORES:,}")
    column: np.ndarray = saved.detach().cpu().numpy().copy()
    _must(bool(np.isfinite(column).all()), f"{name} holds what is not finite")
    return column


def _must(condition: bool, why: str) -> None:
    if not condition:
        raise LDLError(f"its {CALIBRATION_KEY} {why}; it was not written by ldl")
