"""Global batches that are distributed over the processes, and balanced sampling of rare labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Sampler

from ldl.errors import LDLError
from ldl.labels import LabelSpace

ROWS_IN_MEMORY = 1 << 16
"""Rows whose targets are in memory at a time."""


class Draw(NamedTuple):
    """One instance of one batch: its row in the data set, its weight (0 for padding, else 1), and its seed.

    The seed of random augmentation is a function of (seed, epoch, row), or of (seed, epoch, place) if a row may be
    drawn several times. It does not depend on the number of processes and workers.
    """

    row: int
    weight: float
    seed: int


class Draws:
    """The draws of one batch, held as arrays.

    Args:
        rows: (B,) int64.
        weights: (B,) float32; None is 1 for all.
        seeds: (B,) int64; None is 0 for all.
        coming: Returns the rows (M,) of this and the next batches for a wanted number of rows, or None. It is not
            sent to other processes.
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
    def of(cls, draws: Iterable[Draw]) -> Draws:
        """Convert single draws to arrays; return ``Draws`` unchanged."""
        if isinstance(draws, Draws):
            return draws
        rows, weights, seeds = zip(*draws)
        return cls(np.array(rows, np.int64), np.array(weights, np.float32), np.array(seeds, np.int64))

    def __reduce__(self) -> tuple[type[Draws], tuple[np.ndarray, ...]]:
        return Draws, (self.rows, self.weights, self.seeds)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Draw]:
        return map(Draw, self.rows.tolist(), self.weights.tolist(), self.seeds.tolist())


@dataclass(eq=False)
class DealtBatchSampler(Sampler[Any]):
    """A sampler that cuts one permutation into global batches and deals row i to rank i % world_size.

    The permutation is the same on all ranks. Every rank gets the same number of batches, of equal length; ranks with
    fewer rows get padding of weight 0. Therefore any number of processes sees the same global batches as one process.

    Attributes:
        size: Number of rows of the data set.
        batch_size: Rows of a *global* batch.
        shuffle: Permute the rows, differently in every epoch; otherwise every epoch has them in order.
        seed: Seed of the permutation and of the augmentation.
        rank: Number of this process.
        world_size: Number of processes.
        position: Called at the start of every pass; returns the number of the epoch and of its finished batches. The
            training loop owns these numbers, so that a resumed run continues at the right batch.
        often: (size,) mean number of draws of each row in an epoch, with mean 1; None draws each row once.
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
        # Called here and not at the first batch: in between, a resuming training loop resets its counters.
        return self._batches(*self.position())

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
        """Return this rank's places in the batch at ``start``, and how many of them, the last, are padding."""
        batch = np.arange(start, min(start + self.batch_size, self.size))
        mine = batch[self.rank :: self.world_size]
        padding = -(-len(batch) // self.world_size) - len(mine)
        return np.append(mine, np.repeat(batch[:1], padding)), padding

    def _coming(self, order: np.ndarray, start: int, count: int) -> np.ndarray:
        each = -(-self.batch_size // self.world_size)
        starts = range(start, self.size, self.batch_size)[: max(1, count // each)]
        return order[np.concatenate([self._dealt(position)[0] for position in starts])]


def balanced_weights(target: Any, rows: np.ndarray, labels: LabelSpace, power: float, width: float = 2.0) -> np.ndarray:
    """Return the mean number of draws of each training row under label distribution smoothing, (n,) with mean 1.

    The density of a label is the mean of the training targets, smoothed over ordinal labels by a Gaussian (Yang et
    al., "Delving into Deep Imbalanced Regression", ICML 2021, Section 3.1). The weight of a row is the mean of
    ``density ** -power`` under its target.

    Args:
        target: Targets of all instances, (N, C), a tensor or a ``ldl.data.storage.BatchColumn``; None has none.
        rows: (n,) training rows.
        labels: The label space. Nominal labels and labels on a grid are not smoothed.
        power: 0 draws all rows equally, 1 all labels equally.
        width: Standard deviation of the Gaussian, in the unit of the labels.

    Raises:
        LDLError: Targets belong to pixels.
    """
    parts = [torch.from_numpy(block) for block in np.array_split(rows, -(-len(rows) // ROWS_IN_MEMORY))]
    if target is None or target[parts[0][:1]].ndim != 2:
        raise LDLError("data.balance needs a target an instance, and these have one at every pixel; leave it out")
    density = torch.stack([target[block].double().sum(0) for block in parts]).sum(0) / len(rows)
    if labels.kind == "ordinal" and labels.ndim == 1:
        density = labels.kernel(width).double() @ density
    # A label without density occurs in no training row.
    rarity = torch.where(density > 0, density, torch.inf) ** -power
    weights = torch.cat([target[block].double() @ rarity for block in parts])
    return (weights / weights.mean()).numpy()


def draw(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw as many row numbers as there are weights of mean 1, (n,) int64, in random order.

    The sampling is systematic, which keeps its variance low: a row of weight w is drawn floor(w) or ceil(w) times.
    """
    order = rng.permutation(len(weights))
    ends = np.cumsum(weights[order])
    ends *= len(weights) / ends[-1]
    counts = np.diff(np.floor(np.append(0.0, ends) + rng.random()))
    counts[-1] += len(weights) - counts.sum()
    return rng.permutation(np.repeat(order, counts.astype(np.int64)))
