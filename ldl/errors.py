"""The one exception type for mistakes a user can fix, and how errors of libraries become one line of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class LDLError(ValueError):
    """Wrong input. The message is one line: the culprit, what is accepted, and the fix.

    The command line prints it without a traceback and exits with code 2.
    """


class SharedError(LDLError):
    """An :class:`LDLError` that all processes raise at the same point."""


ANY_ERROR = (Exception, MemoryError)
"""Errors of readers of files from anywhere, in which damage may claim any amount of memory."""


@contextmanager
def explaining(problem: str, fix: str = "", errors: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Turn an error of a library inside this context into the line ``problem: its message; fix``.

    Libraries raise errors of many types without a common base, above all for damaged files. An error of ldl itself
    passes unchanged, and so does a MemoryError that is not named in ``errors``.

    Args:
        problem: Culprit, and what cannot be done with it.
        fix: What the user can do.
        errors: Types of errors that are expected.

    Raises:
        LDLError: An expected error.
    """
    try:
        yield
    except LDLError:
        raise
    except errors as error:
        if isinstance(error, MemoryError) and MemoryError not in errors:
            raise
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        end = f"; {fix}" if fix else ""
        raise LDLError(f"{problem}: {' '.join(reason.split())[:200]}{end}") from error


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Begin the message of each LDLError inside this context with a name: ``name: message``."""
    try:
        yield
    except LDLError as error:
        raise type(error)(f"{name}: {error}") from error


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest of ``names``, or an empty string."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_one_of(subject: str, name: Any, names: Iterable[str]) -> None:
    """Raise LDLError unless a name is one of the accepted ``names``, which the message lists."""
    names = list(names)
    if name not in names:
        raise LDLError(f"{subject} {name!r} must be one of {', '.join(names)}{did_you_mean(str(name), names)}")


def some(names: Sequence[str], most: int = 8) -> str:
    """Return the first names and the number of further names, for messages."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(repr(name) for name in names[:most]) or "none") + more
