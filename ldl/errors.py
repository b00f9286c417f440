"""The one exception type for mistakes a user can fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class LDLError(ValueError):
    """Wrong input. The message is one line: the culprit, what is accepted, and the fix.

    The command line prints it without a traceback and exits with code 2.
    """


class SharedError(LDLError):
    """An :class:`LDLError` that all processes raise at the same point."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest of ``names``, or an empty string."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def some(names: Sequence[str], most: int = 8) -> str:
    """Return the first names and the number of further names, for messages."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(repr(name) for name in names[:most]) or "none") + more
