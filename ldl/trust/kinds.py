"""Whether a plain value is of an annotated type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin


def fits(value: Any, kind: Any) -> bool:
    """Whether ``value`` is what the annotation says: no text for a number, no number for a switch.

    Annotations of other forms than those that options have accept everything.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in parts)
    if origin is tuple and Ellipsis not in parts:
        return isinstance(value, list | tuple) and len(value) == len(parts) and all(map(fits, value, parts))
    if origin in (tuple, list, Sequence):
        return isinstance(value, list | tuple) and all(fits(item, parts[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict)
    if kind is float:
        return type(value) in (int, float)
    if kind in (bool, int, str, NoneType):
        return type(value) is kind
    return isinstance(value, kind) if isinstance(kind, type) else True


def shown(kind: Any) -> str:
    """The annotation as it is written."""
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")
