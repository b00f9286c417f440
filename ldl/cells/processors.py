"""How many processors this process may use: fewer than the machine has where a scheduler or ``taskset`` says so."""

from __future__ import annotations

import os


def processors() -> int:
    """The processors of this process, 1 at least."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
