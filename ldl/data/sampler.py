"""Global batches, dealt to the processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
from torch.utils.data import Sampler

from ldl.data.balance import draw


class Draw(NamedTuple):
    """One instance of one batch: its row in the data set, its weight, which is 0 for padding and else 1, and its seed.

    The seed, for random augmentation, is a function of (seed, epoch, row), or of (seed, epoch, place) where a row may
    be drawn several times: the same for any number of processes and workers.
    """

    row: int
    weight: float
    seed: int


class Draws(Sequence[Draw]):
    """The draws of one batch, as arrays: millions of rows make no objects of their own.

    Args:
        rows: (B,) int64.
        weights: (B,) float32; None is 1 for all.
        seeds: (B,) int64; None is 0 for all.
        coming: Tells the rows (M,) of this batch and of as many after it as have a wanted number of rows, or of all
            that are left; None where nobody knows. It stays in the process.
    """

    def __init__(
        self,
        rows: np.ndarray,
        weights: np.ndarray | None = None,
        seeds: np.ndarray | None = None,
        coming: Callable[[int], np.ndarray] | None = None,
    ) -> None:
        self.rows = rows
        self.coming = coming
        self.weights = np.ones(len(rows), np.float32) if weights is None else weights
        self.seeds = np.zeros(len(rows), np.int64) if seeds is None else seeds

    @classmethod
    def of(cls, draws: Sequence[Draw]) -> Draws:
        """Draws that somebody has put together one by one, or such arrays as they are."""
        if isinstance(draws, Draws):
            return draws
        rows, weights, seeds = zip(*draws)
        return cls(np.array(rows, np.int64), np.array(weights, np.float32), np.array(seeds, np.int64))

    def __reduce__(self) -> tuple[type[Draws], tuple[np.ndarray, ...]]:
        return Draws, (self.rows, self.weights, self.seeds)

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    @overload
    def __getitem__(self, place: int) -> Draw: ...

    @overload
    def __getitem__(self, place: slice) -> Draws: ...

    def __getitem__(self, place: int | slice) -> Draw | Draws:
        if isinstance(place, slice):
            return Draws(self.rows[place], self.weights[place], self.seeds[place])
        return Draw(int(self.rows[place]), float(self.weights[place]), int(self.seeds[place]))


@dataclass(eq=False)
class DealtBatchSampler(Sampler[Any]):
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
        often: (size,) how often each row is drawn in an epoch, on average, with mean 1 (``ldl.data.balance``); None
            draws each once.
    """

    size: int
    batch_size: int
    shuffle: bool
    seed: int = 0
    rank: int = 0
    world_size: int = 1
    position: Callable[[], tuple[int, int]] = lambda: (0, 0)
    often: np.ndarray | None = None

    def __len__(self) -> int:
        return -(-self.size // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        # Asked at once, not at the first batch: between the two a resuming training loop resets its counters.
        return self._batches(*(self.position() if self.shuffle else (0, 0)))

    def _batches(self, epoch: int, done: int) -> Iterator[Draws]:
        rng = np.random.default_rng([self.seed, epoch])
        if self.often is not None:
            order = draw(self.often, rng)
        else:
            order = rng.permutation(self.size) if self.shuffle else np.arange(self.size)
        seeds = np.random.default_rng([self.seed, epoch, 1]).integers(2**31, size=self.size)
        for start in range(done * self.batch_size, self.size, self.batch_size):
            places, padding = self._dealt(start)
            rows = order[places]
            weights = np.repeat(np.array([1, 0], np.float32), [len(rows) - padding, padding])
            drawn = seeds[rows if self.often is None else places]
            yield Draws(rows, weights, drawn, partial(self._coming, order, start))

    def _dealt(self, start: int) -> tuple[np.ndarray, int]:
        """This rank's places in the batch that begins at a place, and how many of them, the last, are padding."""
        batch = np.arange(start, min(start + self.batch_size, self.size))
        mine = batch[self.rank :: self.world_size]
        padding = -(-len(batch) // self.world_size) - len(mine)
        return np.append(mine, np.repeat(batch[:1], padding)), padding

    def _coming(self, order: np.ndarray, start: int, count: int) -> np.ndarray:
        each = -(-self.batch_size // self.world_size)
        starts = range(start, self.size, self.batch_size)[: max(1, count // each)]
        return order[np.concatenate([self._dealt(place)[0] for place in starts])]
