"""What libraries refuse, in one line: options and data that only they can check, and sizes beyond the memory.

Errors inside a user's own class are among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from ldl.errors import LDLError
from ldl.running.plugin_errors import plugin_error

SPEAKERS = {
    "pytorch_lightning": "the trainer refuses its options",
    "lightning_fabric": "the trainer refuses its options",
    "torch.optim": "optimiser or scheduler refuses its options",
    "albumentations": "a picture transform refuses its options",
}
"""Packages whose own complaints are about what a user has asked for, with the beginning of the line."""

KINDS = (MisconfigurationException, ValueError, TypeError, RuntimeError, ArithmeticError, ImportError)
SHORTAGES = ("can't allocate memory", "not enough memory", "Storage size calculation overflowed")


@contextmanager
def refusals() -> Iterator[None]:
    """Raise LDLError for what Lightning, torch's optimisers, albumentations and plugins raise, and a lack of memory."""
    try:
        yield
    except LDLError:
        raise
    except Exception as error:
        if (line := explain(error)) is None:
            raise
        raise LDLError(line) from error


def explain(error: Exception) -> str | None:
    """One line for a complaint that is about what a user has asked for; None for any other."""
    text = " ".join(str(error).split())[:300]
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(words in text for words in SHORTAGES):
        return f"not enough memory: {text}; ask for less, such as smaller batches, fewer trees or smaller layers"
    if (line := plugin_error(error)) is not None:
        return line
    raised_by = _module_of(error)
    if raised_by.startswith("jsonargparse") and isinstance(error, ValueError):
        return _of_parser(str(error))
    speaker = next((name for name in SPEAKERS if raised_by == name or raised_by.startswith(f"{name}.")), None)
    return f"{SPEAKERS[speaker]}: {text}" if speaker and isinstance(error, KINDS) else None


def _of_parser(text: str) -> str:
    """What a class said that jsonargparse could not make, without the other types it has tried."""
    said = re.split(r"\n\s*Given value type:", text.rpartition("Errors:\n")[2])[0]
    first = re.split(r"\n\s*- (?:Import path|Expected)", said)[0]
    return " ".join(first.split()).removeprefix("- ")[:300]


def _module_of(error: Exception) -> str:
    """The module whose line raised the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
