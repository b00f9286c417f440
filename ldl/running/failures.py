"""Processes of a run that are lost."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Any

import torch.distributed as dist


def lost_others(error: Exception) -> bool:
    """Whether an exchange between processes broke; gloo's errors have no class of their own."""
    if not (dist.is_available() and dist.is_initialized()):
        return False
    said = str(error)
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and ("gloo" in said or "NCCL" in said))


def who_ended(ranks: list[subprocess.Popen[Any]]) -> str:
    """Which of the launched processes was killed; an empty string where one ended by itself, and so has said why."""
    time.sleep(0.1)
    for rank, process in enumerate(ranks, start=1):
        code = process.poll()
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            return f"rank {rank} (process {process.pid}) was ended by {name}, so all are; was there enough memory?"
        if code:
            return ""
    return "another process of this run has ended or cannot be reached, so this one ends too; see what it said"
