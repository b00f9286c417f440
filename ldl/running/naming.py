"""What a run is called: its directory, and its name in Weights & Biases."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from jsonargparse import Namespace

from ldl.data.base import LDLDataModule

RUN_DIR_VARIABLE = "LDL_RUN_DIR"
"""Rank 0 chooses the run directory; the processes it launches read it here."""

LONGEST = 60
"""Letters of a set's name in a folder's."""


def choose_folder(config: Namespace, data: LDLDataModule, head: str) -> Path:
    """The run directory: as given, as rank 0 chose it, or ``runs/TIME_DATA_HEAD``."""
    if config.run_dir is not None:
        return Path(config.run_dir)
    if RUN_DIR_VARIABLE not in os.environ:
        folder = base = Path("runs") / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{subject(data, head)}"
        number = 1
        while folder.exists():
            number += 1
            folder = base.with_name(f"{base.name}-{number}")
        os.environ[RUN_DIR_VARIABLE] = str(folder)
    return Path(os.environ[RUN_DIR_VARIABLE])


def run_name(folder: Path, data: LDLDataModule, head: str) -> str:
    """The name of a run or of a group of folds: that of its directory, with data and head where it lacks them."""
    return folder.name if subject(data, head) in folder.name else f"{folder.name}_{subject(data, head)}"


def subject(data: LDLDataModule, head: str) -> str:
    """``DATA_HEAD``, of letters that every file system takes."""
    title = re.sub(r"[^\w.-]+", "-", data.title)[:LONGEST]
    return f"{title}_{head}"
