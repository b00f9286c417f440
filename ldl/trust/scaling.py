"""The form of a scaling of features in a checkpoint: numbers and tensors, held against each other."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ldl.errors import LDLError

LEARNED: dict[str, dict[str, str]] = {
    "none": {},
    "standard": {"mean": "F", "scale": "F"},
    "hellinger": {"mean": "F", "scale": "F"},
    "quantile_normal": {"quantiles": "Q F", "references": "Q"},
    "quantile_uniform": {"quantiles": "Q F", "references": "Q"},
}
"""Of every kind of scaling the tensors that it has learned, with their shapes; F is the number of features."""


def check_columns(prepared: dict[str, Any], features: int, where: str) -> None:
    """Hold what is said of a table's columns against its form: names of all ``features``, a key. Raises LDLError."""
    names, key = prepared.get("features"), prepared.get("key")
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if names is not None and not (named and len(set(names)) == len(names) == features):
        raise LDLError(f"{where}.features is no list of {features} names, each another")
    if not (key is None or isinstance(key, str)):
        raise LDLError(f"{where}.key is {str(key)[:80]}, not the name of a matrix")


def check_scaling(state: Any, features: int, where: str) -> None:
    """Hold ``{kind, clip, ...}`` against its form: what was learned of ``features`` features, finite float64.

    Raises LDLError, which names the entry.
    """
    if not isinstance(state, dict) or state.get("kind") not in LEARNED:
        raise LDLError(f"{where} is no scaling of features, of a kind {', '.join(LEARNED)}")
    clip = state.get("clip")
    if not (clip is None or (type(clip) in (int, float) and 0 < clip < math.inf)):
        raise LDLError(f"{where}.clip is {str(clip)[:80]}, not a number above 0")
    shapes, lengths = LEARNED[state["kind"]], {"F": features}
    if wrong := state.keys() ^ {"kind", "clip", *shapes}:
        raise LDLError(f"{where} has no entry, or one too many: {min(map(str, wrong))[:80]}")
    for name, letters in shapes.items():
        tensor = state[name]
        plain = isinstance(tensor, Tensor) and tensor.layout == torch.strided and tensor.dtype == torch.float64
        if not plain or tensor.device.type == "meta":
            raise LDLError(f"{where}.{name} is no tensor of float64 numbers")
        wanted = [lengths.setdefault(letter, size) for letter, size in zip(letters.split(), tensor.shape)]
        if list(tensor.shape) != wanted or len(wanted) != len(letters.split()) or 0 in wanted:
            raise LDLError(f"{where}.{name} has shape {tuple(tensor.shape)}, and there are {features} features")
        right = bool(tensor.isfinite().all())
        right &= name != "scale" or bool((tensor > 0).all())
        right &= name not in ("quantiles", "references") or bool((tensor.diff(dim=0) >= 0).all())
        if not right:
            raise LDLError(f"{where}.{name} is no scaling; take another checkpoint")
