"""The processes of a run begin with the same, or the run is refused."""

from __future__ import annotations

import pytorch_lightning as pl
import torch

from ldl.collective import current_collective
from ldl.errors import SharedError


class Together(pl.Callback):
    """Refuses, by a SharedError, processes of one run that begin with different numbers.

    A subclass says what the numbers mean: see :meth:`begins`.

    Args:
        numbers: With which this process begins, one or more.
    """

    shared = "--run_dir"
    """What must be the same on all machines."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def begins(self, numbers: list[int]) -> str:
        """What a process does that begins with such numbers, in words."""
        raise NotImplementedError

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        own = torch.tensor(self.numbers, device=trainer.strategy.root_device)
        every = [part.tolist() for part in current_collective().gather(own)]
        for rank, numbers in enumerate(every):
            if numbers != every[0]:
                raise SharedError(
                    f"process {rank} {self.begins(numbers)}, but process 0 {self.begins(every[0])}; let {self.shared} "
                    "lie on a disk that all machines share"
                )
