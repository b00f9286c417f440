"""A run that torchrun or SLURM starts again goes on where it was, as with ``--ckpt_path last``, whatever it began with.

A checkpoint notes the launch that has written it, so that a new run in the directory of an old one begins anew. Counts
of restarts alone do not tell: torchrun counts processes that failed, not machines that were lost and came again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace

from ldl.checkpoint import read_checkpoint
from ldl.errors import LDLError
from ldl.running.together import Together

LAST = "last"
"""The ``--ckpt_path`` that is ``checkpoints/last.ckpt`` of ``--run_dir``, where it is there."""
KEY = "launch"
"""Where a checkpoint keeps the launch it is of."""
UNNAMED = "none"
"""The ``--rdzv_id`` of a torchrun that was given none."""


def last_of(run_dir: str | Path) -> Path:
    """The checkpoint of the last epoch, or of the moment a run was told to end."""
    return Path(run_dir) / "checkpoints" / "last.ckpt"


def launch_of(text: str) -> str | None:
    """What names a launch, which may start a run several times, on all its machines: a digest of job and configuration.

    Args:
        text: The configuration, as YAML.

    Returns:
        None outside of torchrun and SLURM.
    """
    job = os.environ.get("SLURM_JOB_ID") or os.environ.get("TORCHELASTIC_RUN_ID")
    return None if job is None else hashlib.sha256(f"{job}\n{text}".encode()).hexdigest()


def restarts() -> bool:
    """Whether torchrun starts this process again when it fails."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", 0)) > 0


def checkpoint_of(config: Namespace, text: str) -> dict[str, Any]:
    """The content of the checkpoint that a run begins with, empty for none; ``config.ckpt_path`` becomes its path.

    Args:
        config: The configuration.
        text: It as YAML.

    Raises:
        LDLError: there is none, or it cannot be read.
    """
    path, place = config.ckpt_path, config.run_dir
    if path == LAST and place is None:
        raise LDLError("--ckpt_path last is checkpoints/last.ckpt of --run_dir; give --run_dir, or the path of a file")
    if path == LAST and config.stage != "fit":
        config.ckpt_path = str(last_of(place))
        return read_checkpoint(config.ckpt_path)
    asked = path == LAST or (config.stage == "fit" and _may_be_again())
    if place is not None and asked and os.path.isfile(last := last_of(place)):
        checkpoint = read_checkpoint(last)
        if path == LAST or checkpoint.get(KEY) == launch_of(text):
            config.ckpt_path = str(last)
            return checkpoint
    if path not in (None, LAST):
        return read_checkpoint(path)
    config.ckpt_path = None
    return {}


def _may_be_again() -> bool:
    """Whether the launcher may have started this run before. All processes find the same where the job has a name."""
    again = [name for name in ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT") if int(os.environ.get(name, 0))]
    named = "SLURM_JOB_ID" in os.environ or os.environ.get("TORCHELASTIC_RUN_ID", UNNAMED) != UNNAMED
    return bool(again) or (restarts() and named)


class Launch(Together):
    """Notes in checkpoints the launch they are of, and holds the processes of a run to the same beginning.

    Args:
        launch: See :func:`launch_of`.
        step: Step of the checkpoint that this process goes on with; -1 for none.
    """

    shared = "--run_dir, or --ckpt_path,"

    def __init__(self, launch: str | None, step: int) -> None:
        super().__init__(step)
        self.launch = launch

    def begins(self, numbers: list[int]) -> str:
        """Anew, or after a step."""
        return "begins anew" if numbers[0] < 0 else f"goes on after step {numbers[0]}"

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if self.launch is not None:
            checkpoint[KEY] = self.launch
