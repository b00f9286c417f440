"""Several processes of torchrun that are forked from that of a test, which has paid for the imports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pytorch_lightning.utilities import rank_zero_only
from torch.distributed.launcher.api import elastic_launch
from torch.distributed.run import config_from_args, parse_args

from benchmarks.robustness.processes import Group, free_port
from ldl.cli import main

PATIENCE = 300.0


def run_several(commands: Sequence[Sequence[str]], folder: Path, processes: int = 2) -> str:
    """Run command lines of ``train.py`` one after the other in processes that torchrun holds together.

    ``folder`` is where they work, and gets ``said.txt``, what they said, which is returned.
    """

    def work() -> None:
        os.chdir(folder)
        os.environ.pop("PL_GLOBAL_SEED", None)
        meeting = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{free_port()}"]
        config = config_from_args(parse_args([*meeting, f"--nproc_per_node={processes}", "train.py"]))[0]
        config.start_method = "fork"
        elastic_launch(config, _rank)(commands)

    log = folder / "said.txt"
    group = Group(work, log)
    assert group.wait(PATIENCE) == 0, log.read_text()[-3000:]
    assert group.end(), "processes stayed"
    return log.read_text()


def _rank(commands: Sequence[Sequence[str]]) -> None:
    rank_zero_only.rank = int(os.environ["RANK"])  # type: ignore[attr-defined]
    for command in commands:
        main(list(command))
