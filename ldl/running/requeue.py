"""SLURM's signal shortly before the end of a job's time: the job is started again, and goes on where it was."""

from __future__ import annotations

import os
import subprocess

import pytorch_lightning as pl
from lightning_fabric.plugins.environments import SLURMEnvironment


def requeue_signal(trainer: pl.Trainer) -> int | None:
    """The signal upon which a trainer's job is to be queued again; None outside of SLURM, or where that is not wanted.

    ``trainer.plugins: SLURMEnvironment`` has it and ``auto_requeue`` as options.
    """
    environment = trainer._accelerator_connector.cluster_environment
    if isinstance(environment, SLURMEnvironment) and environment.auto_requeue:
        return environment.requeue_signal
    return None


def requeue() -> str:
    """Have SLURM start this job again. Returns what became of that, in words; empty where it refused."""
    job = os.environ.get("SLURM_JOB_ID", "")
    if "SLURM_ARRAY_JOB_ID" in os.environ:
        job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    try:
        code = subprocess.run(["scontrol", "requeue", job], check=False, timeout=10).returncode
    except (OSError, subprocess.TimeoutExpired):
        code = 1
    return "" if code else f"job {job} is queued again"
