"""The processes of a run begin with the same, or the run is refused."""

from __future__ import annotations

import pytorch_lightning as pl
import torch

from ldl.collective import current_collective
from ldl.errors import SharedError


class Together(pl.Callback):
    """Refuses, by a SharedError, processes of one run that begin with different numbers.

    A subclass says what a number means: see :meth:`begins`.

    Args:
        number: With which this process begins.
    """

    shared = "--run_dir"
    """What must be the same on all machines."""

    def __init__(self, number: int) -> None:
        self.number = number

    def begins(self, number: int) -> str:
        """What a process does that begins with a number, in words."""
        raise NotImplementedError

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        own = torch.tensor([self.number], device=trainer.strategy.root_device)
        numbers = torch.cat(current_collective().gather(own)).tolist()
        for rank, number in enumerate(numbers):
            if number != numbers[0]:
                raise SharedError(
                    f"process {rank} {self.begins(number)}, but process 0 {self.begins(numbers[0])}; let {self.shared} "
                    "lie on a disk that all machines share"
                )
