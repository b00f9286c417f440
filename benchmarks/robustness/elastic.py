"""Agents of torchrun on one machine, each of which stands for a machine of one process."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pytorch_lightning.utilities import rank_zero_only
from torch.distributed.launcher.api import elastic_launch
from torch.distributed.run import config_from_args, parse_args
from torch.multiprocessing import _prctl_pr_set_pdeathsig  # type: ignore[attr-defined]

from benchmarks.robustness.processes import Group
from ldl.cli import main

REJOINS = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Else an agent that joins a run later waits for an address that the first one tells once, at the beginning."""
TRAIN = Path(__file__).parents[2] / "train.py"


class Agent(Group):
    """``torchrun`` with one process of ``train.py``, of a run of two machines.

    Args:
        arguments: The command line of ``train.py``.
        log: Gets what agent and process say.
        port: Of the first agent, at which they meet.
        job: The name of the run, which is the same for all its agents.
        forks: Fork the process, rather than have Python and torch started once more.
    """

    def __init__(self, arguments: list[str], log: Path, port: int, job: str, forks: bool = True) -> None:
        launcher = [
            *("--nnodes", "2", "--nproc_per_node", "1", "--max_restarts", "3", "--rdzv_id", job),
            *("--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}"),
            # Lost agents are missed after 2 seconds, instead of 15.
            *("--rdzv_conf", "keep_alive_interval=1,keep_alive_max_attempt=2"),
        ]
        two = ["--trainer.num_nodes", "2", "--trainer.devices", "1", "--trainer.strategy", "ddp"]
        command = [*launcher, str(TRAIN), *arguments, *two]

        def work() -> None:
            os.environ |= REJOINS
            (_launch if forks else _execute)(command)

        super().__init__(work, log)

    def kill_process(self) -> None:
        """End the process of ``train.py`` at once, and leave the agent alone."""
        for process in set(self._left()) - {self.leader}:
            os.kill(process, signal.SIGKILL)


def _execute(command: list[str]) -> None:
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", *command])


def _launch(command: list[str]) -> None:
    """What ``torchrun`` does, with a process that is forked and so has everything imported."""
    config, _, (_, _, *arguments) = config_from_args(parse_args(command))
    config.start_method = "fork"
    elastic_launch(config, _work)(arguments)


def _work(arguments: list[str]) -> None:
    # As of processes with a Python of their own: torch ties forked ones to the life of their agent.
    _prctl_pr_set_pdeathsig(0)
    rank_zero_only.rank = int(os.environ["RANK"])  # type: ignore[attr-defined]
    main(arguments)
