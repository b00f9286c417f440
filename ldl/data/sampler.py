"""Global batches, dealt to the processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch.utils.data import Sampler


class Draw(NamedTuple):
    """One instance of one batch: its row in the data set, its weight, which is 0 for padding and else 1, and its seed.

    The seed, for random augmentation, is a function of (seed, epoch, row): the same for any number of processes and
    workers.
    """

    row: int
    weight: float
    seed: int


@dataclass(eq=False)
class DealtBatchSampler(Sampler[list[Draw]]):
    """Cuts one permutation, the same on all ranks, into global batches and deals row i to rank i % world_size.

    Every rank gets as many batches as the others and batches of equal length; ranks that come away short get
    padding of weight 0. So any number of processes sees the same global batches as one.

    Attributes:
        size: Number of rows of the data set.
        batch_size: Rows of a *global* batch.
        shuffle: Permute the rows, differently every epoch.
        seed: Seed of the permutation and of the augmentation.
        rank: Number of this process.
        world_size: Number of processes.
        position: Called at the start of every pass for the number of the epoch and how many of its batches are done
            already: from the training loop, not a counter here, so that a resumed run goes on where the other stopped.
    """

    size: int
    batch_size: int
    shuffle: bool
    seed: int = 0
    rank: int = 0
    world_size: int = 1
    position: Callable[[], tuple[int, int]] = lambda: (0, 0)

    def __len__(self) -> int:
        return -(-self.size // self.batch_size)

    def __iter__(self) -> Iterator[list[Draw]]:
        # Asked at once, not at the first batch: between the two a resuming training loop resets its counters.
        return self._batches(*(self.position() if self.shuffle else (0, 0)))

    def _batches(self, epoch: int, done: int) -> Iterator[list[Draw]]:
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(self.size) if self.shuffle else np.arange(self.size)
        seeds = np.random.default_rng([self.seed, epoch, 1]).integers(2**31, size=self.size)
        for start in range(done * self.batch_size, self.size, self.batch_size):
            batch = order[start : start + self.batch_size]
            mine = batch[self.rank :: self.world_size]
            padding = -(-len(batch) // self.world_size) - len(mine)
            draws = [Draw(int(row), 1.0, int(seeds[row])) for row in mine]
            yield draws + [Draw(int(batch[0]), 0.0, int(seeds[batch[0]]))] * padding
