"""Failures that come from outside, a full disk or a lost process, in one line."""

from __future__ import annotations

import errno
import signal
import subprocess
import time
from typing import Any

import torch.distributed as dist

REASONS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
"""Of these the place that is written to, and not the program, is the cause."""


def in_one_line(error: Exception, ranks: list[subprocess.Popen[Any]]) -> str | None:
    """What to tell of an error, an empty string where another process tells it, or None: it is no such failure.

    Args:
        error: What a run ended with.
        ranks: The processes that this one has launched, from rank 1.
    """
    if isinstance(error, OSError) and error.errno in REASONS:
        place = f"{error.filename} cannot be written or read" if error.filename else "a file cannot be written"
        return f"{place}: {error.strerror}; what was written before is whole: mend that and go on with --ckpt_path"
    if _lost_others(error):
        return who_ended(ranks)
    return None


def _lost_others(error: Exception) -> bool:
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
