"""Meeting the processes of other machines, or telling that they do not come."""

from __future__ import annotations

import os
import sys
import threading
from datetime import timedelta

import pytorch_lightning as pl
import torch.distributed as dist
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.utilities import rank_zero_only

from ldl.errors import LDLError

try:
    from torch.distributed import set_timeout
except ImportError:  # before torch 2.14
    from torch.distributed.distributed_c10d import _set_pg_timeout as set_timeout

VARIABLE = "LDL_RENDEZVOUS_SECONDS"
"""How long the processes wait for each other at the start."""
DEFAULT = 600
LAUNCHED = {"RANK", "LOCAL_RANK", "SLURM_PROCID"}
"""Variables of which one is there where a launcher numbers the processes."""
PATIENCE = 30
"""Seconds after which it is told what is waited for."""


def take_rank(num_nodes: int) -> None:
    """Let the process of a machine that was started by hand know that it is not the first, before a trainer is made.

    The trainer, which knows how many processes a machine has, sets the number.
    """
    if num_nodes > 1 and not LAUNCHED & os.environ.keys() and (node := LightningEnvironment().node_rank()):
        rank_zero_only.rank = node  # type: ignore[attr-defined]


def meet(trainer: pl.Trainer) -> pl.Trainer:
    """Limit the time that a trainer of several machines waits for the others; torch's limit is half an hour.

    Raises:
        LDLError: the limit is no number of seconds; later, by the trainer, that others are missing.
    """
    strategy = trainer.strategy
    if not isinstance(strategy, DDPStrategy) or trainer.num_nodes == 1:
        return trainer
    text = os.environ.get(VARIABLE, str(DEFAULT))
    if not text.isdigit() or not int(text):
        raise LDLError(f"{VARIABLE} is {text!r}, but must be a whole number of seconds, above 0")
    environment, setup, later = strategy.cluster_environment, strategy.setup_environment, strategy._timeout
    missing = (
        f"of --trainer.num_nodes {trainer.num_nodes}: start the same command on each, with MASTER_ADDR "
        f"{environment.main_address} MASTER_PORT {environment.main_port} and NODE_RANK 0 to {trainer.num_nodes - 1} "  # type: ignore[union-attr]
        "(srun and torchrun set them), or leave num_nodes out"
    )

    def setup_environment() -> None:
        timer = threading.Timer(PATIENCE, lambda: print(f"waiting for machines {missing}", file=sys.stderr))
        timer.daemon = True
        timer.start()
        try:
            setup()
        except dist.DistError as error:
            said = str(error).splitlines()[0].rstrip(".")
            raise LDLError(f"after {text} s there are not all machines {missing} ({said})") from error
        finally:
            timer.cancel()
        # The limit of every exchange is torch's again: one process may fit or draw for long.
        set_timeout(later)  # type: ignore[arg-type]

    strategy._timeout = timedelta(seconds=int(text))
    strategy.setup_environment = setup_environment  # type: ignore[method-assign]
    return trainer
