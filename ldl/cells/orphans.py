"""Processes that end when the one that started them is gone, however that went."""

from __future__ import annotations

import os
import threading
import time

TICK = 1.0
"""Seconds between two looks at the parent."""


def end_with(parent: int) -> None:
    """End this process, in the middle of whatever it does, soon after ``parent``, which started it, has ended."""
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(TICK)
    os._exit(1)
