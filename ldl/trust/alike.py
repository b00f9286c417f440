"""Whether a saved state is like the one that an object of now would save."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ldl.errors import LDLError


def check_alike(given: Any, own: Any, where: str, closed: bool = False, whole: bool = False) -> None:
    """Hold a saved state against a fresh one: dicts entry by entry, numbers and texts by their types.

    Entries that only one of them has are left to those who load it, and what is None or empty in the fresh one may
    be anything in the other.

    Args:
        given: What a file says.
        own: What the object itself would save now.
        where: Its name, for messages.
        closed: Refuse entries that the fresh one has not, and counts below 0.
        whole: Refuse a state without an entry that the fresh one has.

    Raises:
        LDLError: naming the entry.
    """
    if own is None or (isinstance(own, dict | list) and not own):
        return
    right = type(given) is type(own) or (type(own) is float and type(given) is int)
    right |= isinstance(given, Tensor) and isinstance(own, Tensor)
    right |= isinstance(given, dict) and isinstance(own, dict)
    if not right:
        raise LDLError(f"{where} is a {type(given).__name__}, not a {type(own).__name__}")
    if isinstance(own, Tensor) and given.shape != own.shape:
        raise LDLError(f"{where} has shape {tuple(given.shape)}, not {tuple(own.shape)}")
    if closed and type(own) is int and not 0 <= given < 2**62:
        raise LDLError(f"{where} is out of range")
    if not isinstance(own, dict):
        return
    if whole and (lacking := own.keys() - given.keys()):
        raise LDLError(f"{where} has no entry {min(lacking)!r}")
    for name, item in given.items():
        if name in own:
            check_alike(item, own[name], f"{where}.{str(name)[:80]}", closed, whole)
        elif closed:
            raise LDLError(f"{where} has an entry {str(name)[:80]!r} that is not known")
