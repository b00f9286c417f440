"""Processes that end with the one that started them, which nobody else would end."""

from __future__ import annotations

import os
import threading
import time
from functools import cache

TICK = 1.0
"""Seconds between two looks whether the parent is there."""


@cache
def end_with(parent: int) -> None:
    """End this process at once, with exit code 1, when it is no longer the child of ``parent``."""
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent").start()


def end_with_agent() -> None:
    """Where torchrun has started this process, end it with its agent.

    An agent that is killed alone leaves its processes behind, which go on, or wait for others that have gone, while the
    agent that takes its place waits for them.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        end_with(os.getppid())


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(TICK)
    os._exit(1)
