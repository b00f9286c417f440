"""Linear algebra whose last bits do not depend on how many threads there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_turn = threading.Lock()
_had: dict[int, int] = {}
"""Threads of the program that are within :func:`one_thread`, and how many of the processor's each had."""


@contextmanager
def one_thread() -> Iterator[int]:
    """Let torch use one thread of the processor; gives how many it had, which it has again afterwards.

    Several threads of a program may be within at once.
    """
    me = threading.get_ident()
    if me in _had:
        yield 1
        return
    with _turn:
        # One that calls torch for the first time takes over what another one has set last, which is 1 within here.
        _had[me] = before = max([torch.get_num_threads(), *_had.values()])
        torch.set_num_threads(1)
    try:
        yield before
    finally:
        with _turn:
            del _had[me]
            torch.set_num_threads(before)
