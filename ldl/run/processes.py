"""The processes of a run: their ranks, the report of a lost process, and strategies that ldl does not support."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from pytorch_lightning.plugins.environments import LightningEnvironment, SLURMEnvironment, TorchElasticEnvironment
from pytorch_lightning.utilities import rank_zero_only

from ldl.errors import LDLError

LAUNCHED = {"RANK", "LOCAL_RANK", "SLURM_PROCID"}
"""Environment variables of which a launcher that numbers the processes sets one."""


def set_node_rank(num_nodes: int) -> None:
    """Set the rank of a process on a machine where the user started it by hand, before a trainer is made.

    The trainer, which has the number of processes per machine, corrects the rank.
    """
    if num_nodes > 1 and not LAUNCHED & os.environ.keys() and (node := LightningEnvironment().node_rank()):
        rank_zero_only.rank = node  # type: ignore[attr-defined]


def in_slurm() -> bool:
    """Return whether SLURM, and not torchrun inside of it, has started this process."""
    return SLURMEnvironment.detect() and not TorchElasticEnvironment.detect()


def is_single_in_slurm(arguments: Mapping[str, Any]) -> bool:
    """Return whether a trainer with these arguments is one process in a SLURM allocation of several tasks.

    Lightning would require ``srun`` and one process for every task.
    """
    devices, accelerator = str(arguments["devices"]), arguments["accelerator"]
    on_cpu = accelerator == "cpu" or (accelerator == "auto" and not torch.cuda.is_available())
    one = arguments["num_nodes"] == 1 and (devices == "1" or (devices == "auto" and on_cpu))
    return one and os.environ.get("SLURM_NTASKS", "1") != "1" and in_slurm() and not arguments["plugins"]


def lost_others(error: Exception) -> bool:
    """Return whether an exchange between processes failed; gloo's errors have no class of their own."""
    if not (dist.is_available() and dist.is_initialized()):
        return False
    text = str(error)
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and ("gloo" in text or "NCCL" in text))


def who_ended(ranks: list[subprocess.Popen[Any]]) -> str:
    """Return which of the launched processes was killed; an empty text if one ended by itself and reported why."""
    time.sleep(0.1)
    for rank, process in enumerate(ranks, start=1):
        code = process.poll()
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            return f"rank {rank} (process {process.pid}) was ended by {name}, so all are; was there enough memory?"
        if code:
            return ""
    return "another process of this run has ended or cannot be reached, so this one ends too; see its output"


UNSUPPORTED = ("xla", "tpu", "fsdp", "deepspeed", "modelparallel", "spawn", "fork", "notebook", "multiprocessing")
"""Parts of the names of strategies, or of their launchers, in which several processes would not equal one."""


def check_strategy(strategy: Any) -> None:
    """Raise LDLError for an unsupported strategy, by name or as an object."""
    given = strategy if isinstance(strategy, str) else type(strategy).__name__
    launcher = type(getattr(strategy, "launcher", None)).__name__
    name = f"{given} {launcher}".lower().replace("_", "")
    if any(part in name for part in UNSUPPORTED):
        raise LDLError(
            f"trainer.strategy {given!r} shards the weights or copies this process, and leaf updates, metrics and "
            "exact checkpoints need whole ones; take ddp, which starts processes of their own"
        )
