"""Communication between processes. The default is a single process, so that a head can be tested alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.distributed as dist
from pytorch_lightning.utilities import rank_zero_only
from torch import Tensor
from typing_extensions import override


class Collective:
    """A group of one process.

    Attributes:
        rank: Number of this process, from 0.
        world_size: Number of processes.
    """

    rank: int = 0
    world_size: int = 1

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum of ``tensor`` over all processes. Every process must call it."""
        return tensor

    def sum_numbers(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of numbers on the host. It waits for the other hosts, but not for a device."""
        return [float(number) for number in numbers]

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, by rank. First dimensions may differ, and may be 0."""
        return [tensor]

    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        """Return the tensor of process ``source``. Shapes and dtypes must agree."""
        return tensor


class TorchCollective(Collective):
    """The default torch.distributed group."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    @override
    def sum(self, tensor: Tensor) -> Tensor:
        total = tensor.contiguous().clone()
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        return total

    @override
    def sum_numbers(self, numbers: Sequence[float]) -> list[float]:
        total = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(total, group=None if dist.get_backend() == "gloo" else _beside(dist.group.WORLD))
        return total.tolist()

    @override
    def gather(self, tensor: Tensor) -> list[Tensor]:
        rows = torch.tensor([tensor.shape[0]], device=tensor.device)
        counts = [torch.zeros_like(rows) for _ in range(self.world_size)]
        dist.all_gather(counts, rows)
        padded = tensor.new_zeros(max(map(int, counts)), *tensor.shape[1:])
        padded[: tensor.shape[0]] = tensor
        parts = [torch.empty_like(padded) for _ in range(self.world_size)]
        dist.all_gather(parts, padded)
        return [tensor[: int(count)] for tensor, count in zip(parts, counts)]

    @override
    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        copy = tensor.contiguous().clone()
        dist.broadcast(copy, source)
        return copy


@lru_cache(maxsize=1)
def _beside(world: dist.ProcessGroup | None) -> Any:
    """Return a second group, for CPU tensors, beside a group for device tensors. Every process calls it."""
    return dist.new_group(backend="gloo")


def current_collective() -> Collective:
    """Return the torch.distributed group if it is initialised, else a group of one process."""
    return TorchCollective() if dist.is_available() and dist.is_initialized() else Collective()


def interleave(parts: list[Tensor]) -> Tensor:
    """Merge the rows of all ranks, of which rank r has ``rows[r::world_size]``, into their original order."""
    rows = torch.cat([torch.arange(len(tensor), device=tensor.device) for tensor in parts])
    return torch.cat(parts)[rows.argsort(stable=True)]


def process_rank() -> int:
    """Return the rank from the launcher's environment, which is known before torch.distributed starts."""
    return getattr(rank_zero_only, "rank", 0)
