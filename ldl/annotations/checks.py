"""Checks of the arrays of votes and predictions that enter the functions of ``ldl.annotations``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ldl.errors import LDLError
from ldl.validation.tensors import off_simplex


def as_votes(counts: Any, empty: bool = False) -> np.ndarray:
    """Return votes as float64 (N, C).

    Args:
        counts: Votes on N items for C labels.
        empty: Whether an item may have no vote.

    Raises:
        LDLError: Another shape, votes that are negative or not finite, or an item without a vote.
    """
    votes = _as_matrix(counts, "votes")
    bad = ~(np.isfinite(votes) & (votes >= 0))
    if bad.any():
        row, label = np.argwhere(bad)[0]
        raise LDLError(
            f"votes must be finite and at least 0, and item {row} has {votes[row, label]:g} for label {label}; "
            "correct them, or leave the item out"
        )
    if not empty and len(without := np.flatnonzero(votes.sum(1) == 0)):
        raise LDLError(
            f"{len(without)} of {len(votes)} items have no vote, the first is item {without[0]}; leave them out"
        )
    return votes


def check_several(counts: np.ndarray) -> np.ndarray:
    """Return the number of votes of each item, (N,). Raises LDLError if no item has two votes."""
    totals = np.asarray(counts.sum(1))
    if not (totals > 1).any():
        raise LDLError(f"none of {len(counts)} items has two votes, so their agreement cannot be measured; add votes")
    return totals


def as_predictions(prediction: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return predictions as float64 of a shape (N, C). Raises LDLError unless all rows are distributions."""
    rows = _as_matrix(prediction, "predictions")
    if rows.shape != shape:
        raise LDLError(
            f"predictions have the shape {rows.shape} and the votes {shape}; give each item one row and each label one "
            "column"
        )
    if len(wrong := off_simplex(torch.from_numpy(rows))):
        row = int(wrong[0])
        raise LDLError(
            f"row {row} of the predictions is no distribution: its least probability is {rows[row].min():g} and its "
            f"sum {rows[row].sum():g}; make probabilities finite and at least 0, and divide them by their sum"
        )
    return rows


def _as_matrix(numbers: Any, name: str) -> np.ndarray:
    try:
        matrix = np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        raise LDLError(f"{name} must be numbers, one row an item and one column a label; convert them") from None
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise LDLError(f"{name} have the shape {matrix.shape}, not (N, C); pass one row an item and one column a label")
    return matrix
