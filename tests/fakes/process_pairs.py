"""What the second of two processes hears from the first, in one process and one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

from ldl.collective import Collective

T = TypeVar("T")


class First(Collective):
    """The first of two processes, which does not wait for the other: it hears itself alone."""

    world_size = 2

    def __init__(self) -> None:
        self.said: list[Tensor] = []

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [self.broadcast(tensor)]

    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        self.said.append(tensor)
        return tensor


class Second(Collective):
    """The second, which hears what the first has said."""

    rank, world_size = 1, 2

    def __init__(self, said: list[Tensor]) -> None:
        self.said = iter(said)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [next(self.said), tensor]

    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        return next(self.said)


class Thread(Collective):
    """One of two processes, which are threads that add up their tensors."""

    world_size = 2

    def __init__(self, rank: int, slots: dict[int, Tensor], barrier: threading.Barrier) -> None:
        self.rank, self.slots, self.barrier = rank, slots, barrier

    def sum(self, tensor: Tensor) -> Tensor:
        self.slots[self.rank] = tensor
        self.barrier.wait(10)
        total = self.slots[0] + self.slots[1]
        self.barrier.wait(10)
        return total


def in_two_threads(work: Callable[[Collective], T]) -> list[T]:
    """The results of two threads, each with its collective."""
    slots: dict[int, Tensor] = {}
    results: dict[int, T] = {}
    barrier = threading.Barrier(2)
    threads = [
        threading.Thread(target=lambda rank=rank: results.update({rank: work(Thread(rank, slots, barrier))}))
        for rank in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [results[0], results[1]]
